-- claim N LEASE CRASHES FORCE FULL gives the sender, a worker, at most N tasks that
-- are due, for LEASE microseconds. The answer is
--
--   own wait lease now base ids scores records runs
--
-- of which the last four are lists: the tasks, when they were due, their records
-- and their runs as they were before. The token of the first is base, of the next
-- base + 1, and so on; what has no record is no task. Wait is the time until the
-- next task is due, lease that until the next lease ends, both -1 if there is none. The same number again gives the same tasks, since
-- an answer may be lost; N -1 says that the worker leaves. FULL is 1 if it has no
-- place for more than N: then others are woken for what is left, which it would
-- come for at once otherwise.
--
-- One worker watches the shard, who set its timer for the first task that is due,
-- or will: it is the owner, and meta has the moment as armed. Whoever schedules
-- something earlier puts members into wake, and the worker that gets the first of
-- them claims and becomes the owner. Each other worker, who is told own = 0, looks a little
-- later than the task is due, in case the owner is gone, and becomes the owner
-- if it is. It matters for speed alone: any claim is right at any time.
--also 'fence', 'paused', 'owner', 'claimed'
--include clock.lua
local worker, number = ARGV[2], ARGV[3]
local n, length = tonumber(ARGV[5]), tonumber(ARGV[6])
local most, force, full = tonumber(ARGV[7]), ARGV[8] == '1', ARGV[9] == '1'
local fence, paused, owner = tonumber(m[4] or '0'), m[5], m[6]
local gone = 100000 -- microseconds after which an owner was not in time

-- Of the claim before there is kept the number, the first token, how many tokens
-- there were, and when the leases ended.
local before, first, had, ends = string.match(last or '', '^(%d+) (%d+) (%d+) (%d+)$')
if before and tonumber(number) < tonumber(before) then
  return redis.error_reply('TICKLESS stale')
end
-- What is written into meta at the end.
local fields = {}
local function keep(first, had, ends)
  fields[1], fields[2] = worker, number .. ' ' .. first .. ' ' .. had .. ' ' .. ends
end

-- write is call for what may be the first command that writes: see permit in lib.lua.
local dirty = false
local function write(...)
  if not dirty then
    dirty = true
    local answer = redis.pcall(...)
    if type(answer) ~= 'table' or not answer.err then return answer end
    call('HDEL', run, '')
  end
  return call(...)
end

local out = {1, -1, -1, now, 0, {}, {}, {}, {}}
local deadline = int(now + length)
local ending = tonumber(call('ZRANGE', lease, 0, 0, 'WITHSCORES')[2] or '')
local again = before and tonumber(before) == tonumber(number)

-- What most claims have nothing to do with.
if n < 0 or again or not last or ending and ending <= now then
--include lib.lua
permit()
dirty = true
if n < 0 then
  if owner == worker then
    call('HDEL', meta, 'armed', 'owner')
    rouse()
  end
  -- What it has sent before and comes later is not carried out.
  if before then
    keep(0, 0, 0)
    call('HSET', meta, unpack(fields))
  end
  return {0, -1, -1, now, 0, {}, {}, {}, {}}
end
sweep()

-- Leases that have run out.
local expired = {}
if ending and ending <= now then
  expired = call('ZRANGEBYSCORE', lease, '-inf', int(now), 'LIMIT', 0, 100)
  ending = tonumber(call('ZRANGE', lease, #expired, #expired, 'WITHSCORES')[2] or '')
end
if #expired > 0 then
  local runs = call('HMGET', run, unpack(expired))
  local crashed, died = 0, 0
  for i, id in ipairs(expired) do
    local token, attempt, crashes, at, flags, next = parse(runs[i])
    if call('HEXISTS', task, id) == 0 then
      -- Done, or cancelled, but for this entry: what a crash has left.
      call('HDEL', run, id)
      call('HDEL', err, id)
    elseif call('ZSCORE', due, id) then
      -- It was not taken out of due when it got its lease: a crash. Now it is here
      -- alone, and waits for its time.
    elseif token == '0' then
      -- It has ended, but for this entry.
      if not call('ZSCORE', dead, id) then
        local at = place(runs[i], call('HGET', task, id))
        call('ZADD', due, at, id)
      end
    else
      crashed = crashed + 1
      if next ~= '-' then
        follow(id, flags, next)
      elseif has(flags, 'c') then
        forget(id)
      elseif crashes + 1 >= most then
        bury(id, attempt, crashes + 1, at, 'the worker crashed or lost its lease, as often as is allowed')
        died = died + 1
      else
        note(id, attempt, 'the worker crashed or lost its lease')
        call('HSET', run, id, state('0', attempt, crashes + 1, at, '-', '-'))
        call('ZADD', due, int(now), id)
      end
    end
  end
  call('ZREM', lease, unpack(expired))
  count('crashed', crashed)
  count('died', died)
end

if again then
  -- The answer to this claim was lost. Its tasks got their leases at one moment,
  -- by which they are found.
  local ids = call('ZRANGEBYSCORE', lease, ends, ends, 'LIMIT', 0, 1000)
  local runs = #ids > 0 and call('HMGET', run, unpack(ids)) or {}
  local low, leases, given, scores, records, before = tonumber(first), {}, {}, {}, {}, {}
  for i = 1, tonumber(had) do
    given[i], scores[i], records[i], before[i] = '', '0', false, false
  end
  for i, id in ipairs(ids) do
    local token, attempt, crashes, at = parse(runs[i])
    local k = tonumber(token) - low + 1
    local record = given[k] and call('HGET', task, id)
    if record then
      given[k], scores[k], records[k] = id, at, record
      before[k] = state(0, attempt - 1, crashes, at, '-', '-')
      leases[#leases + 1], leases[#leases + 2] = deadline, id
    end
  end
  out[5], out[6], out[7], out[8], out[9] = low, given, scores, records, before
  if #leases > 0 then
    call('ZADD', lease, unpack(leases))
    keep(first, had, deadline)
  end
end
end

if not again and n > 0 and not paused then
  local ids = call('ZRANGEBYSCORE', due, '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, n)
  if #ids > 0 then
    local n, scores = #ids / 2, {}
    for i = 1, n do
      local score = ids[2 * i]
      -- Servers write 16 digits out, and miniredis an exponent.
      scores[i] = #score == 16 and score or int(score)
      ids[i] = ids[2 * i - 1]
    end
    for i = 2 * n, n + 1, -1 do ids[i] = nil end
    local records = call('HMGET', task, unpack(ids))
    local runs = call('HMGET', run, unpack(ids))
    -- Tokens do not go back if the server is replaced by one that knows less.
    local base = math.max(fence + 1, now)
    local leases, sets, k = {}, {}, 0
    for i = 1, n do
      local id = ids[i]
      if records[i] then
        leases[k + 1], leases[k + 2] = deadline, id
        sets[k + 1] = id
        if runs[i] then
          local _, attempt, crashes, at = string.match(runs[i], '^(%d+) (%d+) (%d+) (%d+) ')
          if not at then attempt, crashes, at = 0, 0, int(now) end -- damaged
          sets[k + 2] = table.concat({int(base + i - 1), attempt + 1, crashes, at, '- -'}, ' ')
        else
          sets[k + 2] = int(base + i - 1) .. ' 1 0 ' .. scores[i] .. ' - -'
        end
        k = k + 2
      else
        -- An id without a task, which only damage can leave, cannot run.
        call('HDEL', run, id)
        call('HDEL', err, id)
      end
    end
    if k > 0 then
      write('HSET', run, unpack(sets))
      call('ZADD', lease, unpack(leases))
    end
    call('ZREM', due, unpack(ids))
    if k > 0 then
      keep(int(base), n, deadline)
      fields[3], fields[4] = 'fence', int(base + n - 1)
      fields[5], fields[6] = 'claimed', int((m[7] or 0) + k / 2)
      out[5], out[6], out[7], out[8], out[9] = base, ids, scores, records, runs
    end
  end
end
if out[5] == 0 then keep(0, 0, 0) end

local head = call('ZRANGE', due, 0, 0, 'WITHSCORES')
local next = tonumber(head[2] or '')
if not next then
  if armed or owner then call('HDEL', meta, 'armed', 'owner') end
elseif paused then
  out[1] = 0
else
  out[2] = math.max(0, next - now)
  if next <= now and full then
    call('HDEL', run, '') -- as above
    dirty = true
    rouse()
  end
  if next <= now and n == 0 then
    -- The worker has no room. Let another one have it.
    call('HDEL', meta, 'armed', 'owner')
    out[1] = 0
  elseif force or not armed or not owner or armed > next or owner == worker or armed < now - gone then
    local k = #fields
    fields[k + 1], fields[k + 2], fields[k + 3], fields[k + 4] = 'armed', int(next), 'owner', worker
  else
    out[1] = 0
  end
end
if #fields > 0 then write('HSET', meta, unpack(fields)) end
-- What was claimed just now ends later than a worker sleeps without looking.
if ending then out[3] = math.max(0, ending - now) end
return out
