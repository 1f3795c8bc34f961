-- finish [OP ID TOKEN WHEN DUE TEXT]... takes the reports of a worker on tasks
-- that it has run, and answers with a digit for each: 1 if it was accepted, 0 if
-- the lease with this token is no more, and nothing was done.
--
--   d  done. If WHEN is not empty the task repeats and is due then.
--   r  failed; the next attempt is at WHEN. TEXT is the error.
--   x  failed for good. If WHEN is not empty the task repeats, is due then, and the
--      dead letter has an id of its own: one for all runs of the task that died.
--   m  failed for good likewise, but the handler was not called: the attempt does not
--      count.
--   b  handed back: the attempt does not count. If WHEN is not empty it is due then.
--   u  handed back likewise, since the worker does not know what it names: another
--      one shall look.
--
-- DUE is when the run was due, which is another moment than the claim said if
-- missed runs were left out.
--also 'done'
--include once.lua
local ids, plain = {}, last
for i = 5, #ARGV, 6 do ids[#ids + 1] = ARGV[i + 1] end
local runs = call('HMGET', run, unpack(ids))
for i, r in ipairs(runs) do
  local at = 6 * i - 1
  if ARGV[at] ~= 'd' or ARGV[at + 3] ~= '' or r ~= ARGV[at + 2] .. ' 1 0 ' .. ARGV[at + 4] .. ' - -' then
    plain = false
    break
  end
end
if plain then
  -- Nearly always: done at the first attempt, and nothing comes after it.
  call('HDEL', task, unpack(ids))
  call('HDEL', run, unpack(ids))
  call('ZREM', lease, unpack(ids))
  call('HSET', meta, ARGV[2], ARGV[3] .. ' *1 ' .. #ids, 'done', string.format('%.0f', (m[4] or 0) + #ids))
  return string.rep('1', #ids)
end
--include clock.lua
--include lib.lua
permit()
sweep()
local out = {}
local leases, gone = {}, {}
local done, retried, died, released, refused, unknown = 0, 0, 0, 0, 0, 0

-- buryRun makes a dead letter of a run of a task that repeats. It takes the place
-- of the one that the task has, so that a task that fails for ever has one.
local function buryRun(id, attempt, crashes, due_, text)
  local single, runs = id .. '\0', 1
  if call('ZSCORE', dead, single) then
    local _, _, _, _, _, n = parse(call('HGET', run, single))
    runs = (tonumber(n) or 1) + 1
  elseif call('HEXISTS', task, single) == 1 then
    single = single .. due_ -- only damage can have put it into another place
  end
  call('HSET', task, single, call('HGET', task, id) or '')
  local failures = call('HGET', err, id)
  if failures then call('HSET', err, single, failures) end
  note(single, attempt, text)
  call('HSET', run, single, state('0', attempt, crashes, due_, '-', runs))
  call('ZADD', dead, int(now), single)
end

local function one(op, id, token, at, due_, text, r)
  local held, attempt, crashes, _, flags, next = parse(r)
  if op == 'm' then op, attempt = 'x', attempt - 1 end
  if op == 'd' then
    done = done + 1
  elseif op == 'b' then
    released = released + 1
  elseif op == 'u' then
    unknown = unknown + 1
    if armed then call('HDEL', meta, 'armed', 'owner') end
    armed = nil
  end
  if next ~= '-' then return follow(id, flags, next) end
  if has(flags, 'c') then return forget(id) end
  local score = at ~= '' and when(at)
  if op == 'd' or op == 'x' then
    if op == 'x' then died = died + 1 end
    if op == 'x' and score then
      buryRun(id, attempt, crashes, due_, text)
    elseif op == 'x' then
      return bury(id, attempt, crashes, due_, text)
    end
    if not score then return forget(id) end
    return wait(id, int(score))
  end
  if op == 'r' then
    retried = retried + 1
    note(id, attempt, text)
    call('HSET', run, id, state('0', attempt, crashes, due_, '-', int(score)))
  else
    call('HSET', run, id, state('0', attempt - 1, crashes, due_, '-', score and int(score) or '-'))
    score = score or tonumber(due_)
  end
  call('ZADD', due, int(score), id)
  watch(score)
end

local later = {}
for i = 1, #ids do
  local at = 6 * i - 1
  local op, id, token, r = ARGV[at], ids[i], ARGV[at + 2], runs[i]
  if op == 'd' and r == token .. ' 1 0 ' .. ARGV[at + 4] .. ' - -' and ARGV[at + 3] == '' then
    leases[#leases + 1] = id
    gone[#gone + 1] = id
    out[i] = 1
  elseif not r or string.sub(r, 1, #token + 1) ~= token .. ' ' then
    refused = refused + 1
    out[i] = 0
  else
    leases[#leases + 1] = id
    later[#later + 1] = i
    out[i] = 1
  end
end
if #gone > 0 then
  call('HDEL', task, unpack(gone))
  call('HDEL', run, unpack(gone))
  done = done + #gone
end
for _, i in ipairs(later) do
  local at = 6 * i - 1
  one(ARGV[at], ids[i], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], runs[i])
end
if #leases > 0 then call('ZREM', lease, unpack(leases)) end
count('done', done)
count('retried', retried)
count('died', died)
count('released', released)
count('refused', refused)
count('unknown', unknown)
return remember(table.concat(out))
