-- round SENDER NUMBER UNTIL LEASE CRASHES LEAVE REPORTS EXTENDS N FULL HANDLERS NAMES ...
-- carries out the round with this NUMBER of a worker, the SENDER, UNTIL some moment: its
-- reports, its extensions and, if N is not empty, a claim of at most N tasks. Leases last
-- for LEASE microseconds, and a run dies with its CRASHES-th. LEAVE is 1 if the worker
-- will not come again, FULL is 1 if it has no place for more than N: then others are
-- woken for what is left, which it would come for at once otherwise. Of the rest of ARGV
-- there are so many
--
--   REPORTS    OP ID TOKEN WHEN DUE TEXT
--   EXTENDS    ID TOKEN
--   HANDLERS   the handlers that the worker has
--   the rest   the schedules that it has. NAMES has all of them: see crew.lua.
--
-- The ops of reports are
--
--   d  done. If WHEN is not empty the task repeats and is due then.
--   r  failed; the next attempt is at WHEN. TEXT is the error.
--   x  failed for good. If WHEN is not empty the task repeats, is due then, and the
--      dead letter has an id of its own: one for all runs of the task that died.
--   m  failed for good likewise, but the run was not begun: the attempt does not count.
--   b  handed back: the attempt does not count. If WHEN is not empty it is due then.
--
-- DUE is when the run was due, which is another moment than the claim said if missed
-- runs were left out.
--
-- The answer is
--
--   now accepted leases own wait lease base ids scores records runs
--
-- Accepted has, behind an a, a digit for each report: 1 if it was accepted, 0 if the
-- lease with this token is no more, and nothing was done, 2 if the task was scheduled
-- again or cancelled meanwhile, and what that said was done instead. Leases has, behind an l, a digit
-- for each extension: 1 if it was extended, 0 if the lease is no more, 2 if it was and a
-- cancel was asked for. The last four are lists: the tasks, when they were due, their
-- records and their runs as they were before. The token of the first is base, of the next
-- base + 1, and so on; what has no record is no task. Wait is the time until the next task
-- is due, lease that until the next lease ends, both -1 if there is none.
--
-- The same number again gives the same answer to reports and extensions, and the same
-- tasks, as far as they still have their leases.
--
-- One worker watches the shard, which set its timer for the first task that is due,
-- or will: it is the owner, and meta has the moment as armed. Whoever schedules
-- something earlier puts members into wake, and the worker that gets the first of
-- them claims and becomes the owner. Each other worker, which is told own = 0, looks a
-- little later than the task is due, in case the owner is gone, and becomes the owner
-- if it is. It matters for speed alone: any claim is right at any time.
--also ARGV[2], 'fence', 'paused', 'owner', 'claimed', 'done'
--include clock.lua
local sender, number, length, most = ARGV[2], ARGV[3], tonumber(ARGV[5]), tonumber(ARGV[6])
local reports, extends, n, full = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11] == '1'
local last, fence, paused, owner = m[3], tonumber(m[4] or '0'), m[5], m[6]
claims = n and n > 0 and not paused
local gone = 100000 -- microseconds after which an owner was not in time

local before, kept
if last then
  before, kept = string.match(last, '^(%d+) %d+ (.*)$')
  if #number < #before or #number == #before and number < before then
    return redis.error_reply('TICKLESS stale')
  end
end
local again = before == number
if not again and ARGV[4] ~= '' and now > tonumber(ARGV[4]) then
  return redis.error_reply('TICKLESS late')
end
call('HDEL', run, '') -- see permit in lib.lua

local accepted, leases, base, had = 'a', 'l', '0', ''
local out = {now, accepted, leases, 1, -1, -1, 0, {}, {}, {}, {}}
local deadline = int(now + length)
local fields = {sender, ''} -- what is written into meta at the end
local function set(field, value)
  local k = #fields
  fields[k + 1], fields[k + 2] = field, value
end

-- pack and unpacked make the answers short that are all the same.
local function pack(digits)
  local k = #digits - 1
  return k > 8 and digits == string.sub(digits, 1, 1) .. string.rep('1', k) and string.sub(digits, 1, 1) .. '*' .. k or digits
end

if again then
  -- The answer was lost. What was claimed is kept with its ids.
  local function unpacked(s)
    local letter, k = string.match(s, '^(%a)%*(%d+)$')
    return letter and letter .. string.rep('1', tonumber(k)) or s
  end
  accepted, leases, base, had = string.match(kept, '^(%S+) (%S+) (%d+) (.*)$')
  if not accepted then return redis.error_reply('TICKLESS stale') end
  out[2], out[3], out[7] = unpacked(accepted), unpacked(leases), tonumber(base)
  local ids, at = {}, 1
  while at <= #had do
    local _, to, size = string.find(had, '^(%d+):', at)
    ids[#ids + 1] = string.sub(had, to + 1, to + size)
    at = to + size + 1
  end
  local runs, extended = #ids > 0 and call('HMGET', run, unpack(ids)) or {}, {}
  for i, id in ipairs(ids) do
    local token = int(out[7] + i - 1)
    local attempt, crashes, due_ = string.match(runs[i] or '', '^' .. token .. ' (%d+) (%d+) (%d+) ')
    local ending = attempt and tonumber(call('ZSCORE', lease, id) or '')
    out[8][i], out[9][i], out[10][i], out[11][i] = id, '0', false, false
    if ending and ending > now then
      out[10][i] = call('HGET', task, id)
      out[11][i] = table.concat({0, attempt - 1, crashes, due_, '-', '-'}, ' ')
      extended[#extended + 1], extended[#extended + 2] = deadline, id
    end
  end
  if #extended > 0 then call('ZADD', lease, unpack(extended)) end
end

-- The reports.
if reports > 0 and not again then
  local ids, plain = {}, last
  for i = 1, reports do ids[i] = ARGV[9 + 6 * i] end
  local runs = call('HMGET', run, unpack(ids))
  for i, r in ipairs(runs) do
    local at = 8 + 6 * i
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
    accepted = 'a' .. string.rep('1', reports)
    set('done', int((m[8] or 0) + reports))
  else
--include lib.lua
--include finish.lua
  end
  out[2] = accepted
  accepted = pack(accepted)
end

-- The extensions.
local rest = 13 + 6 * reports -- what is behind it
if extends > 0 and not again then
  local ids, digits, held = {}, {}, {}
  for i = 1, extends do ids[i] = ARGV[rest + 2 * i - 1] end
  for i, r in ipairs(call('HMGET', run, unpack(ids))) do
    local token, flags = string.match(r or '', '^(%d+) %d+ %d+ %d+ (%S+)')
    if token ~= ARGV[rest + 2 * i] then
      digits[i] = '0'
    else
      digits[i] = string.find(flags, 'c', 1, true) and '2' or '1'
      held[#held + 1], held[#held + 2] = deadline, ids[i]
    end
  end
  if #held > 0 then call('ZADD', lease, unpack(held)) end
  leases = 'l' .. table.concat(digits)
  out[3] = leases
  leases = pack(leases)
end
rest = rest + 2 * extends

-- known reports whether the worker has the handler, and the schedule, of a record, or of
-- a kind, of which the lengths are at an index. What is damaged every worker knows: it
-- makes a dead letter of it.
local handlers, schedules = {}, {}
for i = rest + 1, rest + ARGV[12] do handlers[ARGV[i]] = true end
for i = rest + ARGV[12] + 1, #ARGV do schedules[ARGV[i]] = true end
local function known(s, at)
  local a, b, c, d = string.byte(s, at, at + 3)
  if not d then return true end
  local from = at + 4 + a * 256 + b
  local to = from + c * 256 + d - 1
  return #s < to
    or handlers[string.sub(s, at + 4, from - 1)] and (to < from or schedules[string.sub(s, from, to)]) or false
end

local ending -- of the first lease
local more = false -- whether something is left that is due
if n then
  ending = tonumber(call('ZRANGE', lease, 0, 0, 'WITHSCORES')[2] or '')
end
if n and not again then
  if call('HGET', crew, sender) ~= ARGV[13] then call('HSET', crew, sender, ARGV[13]) end
  local over = ending and ending <= now
  -- What was put aside.
  local put = not paused and call('ZRANGEBYLEX', kinds, '-', '+', 'LIMIT', 0, 1)[1]
  if not last or over or put then
--include lib.lua
    if not last then sweep() end
    if over then
--include expire.lua
    end
    if put then
--include fetch.lua
    end
  end
end

if n and not again and not paused then
  -- Out are those that are not for this worker, but for others.
  local ids, scores, records, k, strange, budget = {}, {}, {}, 0, nil, 500
  -- look looks at a page of what is due from an index on. It takes what is known, if it
  -- shall, up to n tasks, and returns whether it is to go on.
  local function look(from, size, take)
    local page = call('ZRANGEBYSCORE', due, '-inf', int(now), 'WITHSCORES', 'LIMIT', from, size)
    local some = #page / 2
    if some == 0 then return false end
    local names = {}
    for i = 1, some do names[i] = page[2 * i - 1] end
    local values, lost = call('HMGET', task, unpack(names)), nil
    for i = 1, some do
      local score, value = page[2 * i], values[i]
      if not value then
        -- An id without a task, which only damage can leave, cannot run.
        lost = lost or {}
        lost[#lost + 1] = names[i]
      elseif not known(value, 18) then
        strange = strange or {}
        strange[#strange + 1] = {names[i], score, value}
      elseif take and k < n then
        k = k + 1
        -- Servers write 16 digits out, and miniredis an exponent.
        ids[k], scores[k], records[k] = names[i], #score == 16 and score or int(score), value
      else
        more = true
      end
    end
    if lost then
      call('HDEL', run, unpack(lost))
      call('HDEL', err, unpack(lost))
      call('ZREM', due, unpack(lost))
    end
    if strange then
--include lib.lua
--include aside.lua
    end
    return not more
  end
  local size = n
  while k < n and budget > 0 and look(k, size, true) do
    size = 100 -- there are strange ones
  end
  if k > 0 then
    local runs = call('HMGET', run, unpack(ids))
    -- Tokens do not go back if the server is replaced by one that knows less.
    local low = math.max(fence + 1, now)
    local held, sets, names = {}, {}, {}
    for i = 1, k do
      local id, r = ids[i], runs[i]
      held[2 * i - 1], held[2 * i] = deadline, id
      sets[2 * i - 1] = id
      if r then
        local _, attempt, crashes, at = string.match(r, '^(%d+) (%d+) (%d+) (%d+) ')
        if not at then attempt, crashes, at = 0, 0, int(now) end -- damaged
        sets[2 * i] = table.concat({int(low + i - 1), attempt + 1, crashes, at, '- -'}, ' ')
      else
        sets[2 * i] = int(low + i - 1) .. ' 1 0 ' .. scores[i] .. ' - -'
      end
      names[i] = #id .. ':' .. id
    end
    call('HSET', run, unpack(sets))
    call('ZADD', lease, unpack(held))
    call('ZREM', due, unpack(ids))
    out[7], out[8], out[9], out[10], out[11] = low, ids, scores, records, runs
    base, had = int(low), table.concat(names)
    set('fence', int(low + k - 1))
    set('claimed', int((m[7] or 0) + k))
  end
  -- Is there more that is due and known?
  local head = tonumber(call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or '')
  if head and head <= now then
    size = 1
    while not more and budget > 0 and look(0, size, false) do size = 50 end
    more = more or budget <= 0
  end
end

if n then
  local next = tonumber(call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or '')
  if not next then
    if armed or owner then call('HDEL', meta, 'armed', 'owner') end
  elseif paused then
    out[4] = 0
  else
    out[5] = math.max(0, next - now)
    if next <= now and full then rouse() end
    if next <= now and n == 0 then
      -- The worker has no room. Let another one have it.
      call('HDEL', meta, 'armed', 'owner')
      out[4] = 0
    elseif not armed or not owner or armed > next or owner == sender or armed < now - gone then
      set('armed', int(next))
      set('owner', sender)
    else
      out[4] = 0
    end
  end
  -- What was claimed just now ends later than a worker sleeps without looking.
  if ending then out[6] = math.max(0, ending - now) end
end
if ARGV[7] == '1' then
  call('HDEL', crew, sender)
  if owner == sender or fields[#fields] == sender then
    call('HDEL', meta, 'armed', 'owner')
    for i = #fields - 1, 3, -2 do
      if fields[i] == 'armed' or fields[i] == 'owner' then fields[i + 1] = nil fields[i] = nil end
    end
    rouse()
  end
end
fields[2] = number .. ' ' .. int(now) .. ' ' .. accepted .. ' ' .. leases .. ' ' .. base .. ' ' .. had
call('HSET', meta, unpack(fields))
return out
