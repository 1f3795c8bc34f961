-- round NUMBER UNTIL LEASE CRASHES LEAVE REPORTS EXTENDS N FULL NAMES ... carries out the
-- round with this NUMBER of a worker UNTIL some moment: its reports, its extensions and, if
-- N is not empty, a claim of at most N tasks. Leases last for LEASE microseconds, and a run
-- dies with its CRASHES-th. LEAVE is 1 if the worker will not come again, FULL is 1 if it
-- has no place for more than N: then others are woken for what is left, which it would come
-- for at once otherwise. NAMES is what the worker knows: for how many microseconds it may
-- be silent, and for each handler and schedule "\0hLENGTH:NAME" or "\0sLENGTH:NAME". Behind
-- it are so many
--
--   REPORTS    OP ID TOKEN WHEN DUE TEXT
--   EXTENDS    ID TOKEN
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
-- again or cancelled meanwhile, and what that said was done instead. Leases has, behind an l,
-- a digit for each extension: 1 if it was extended, 0 if the lease is no more, 2 if it was
-- and a cancel was asked for. The last four are lists: the tasks, when they were due, their
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
-- if it is. If what has become due is of a kind that the worker does not know, all are
-- woken, once: meta has as called until when. It matters for speed alone: any claim is
-- right at any time.
--include lib.lua
--include merge.lua
local sender, number, ending, length, most = ARGV[3], ARGV[first], tonumber(ARGV[first + 1]), ARGV[first + 2], tonumber(ARGV[first + 3])
local reports, extends, n = tonumber(ARGV[first + 5]), tonumber(ARGV[first + 6]), tonumber(ARGV[first + 7])
local full, names = ARGV[first + 8] == '1', ARGV[first + 9]
local last, fence, paused, owner, called = m[3], tonumber(m[4] or '0'), m[5], m[6], tonumber(m[9] or '0')
claims = n and n > 0 and not paused
local gone = 100000 -- microseconds after which an owner was not in time

local before, kept
if last then
  before, kept = match(last, '^(%d+) %d+ (.*)$')
  if older(number, before) then return redis.error_reply('TICKLESS stale') end
end
local again = before == number
if not again and ending and now > ending then return redis.error_reply('TICKLESS late') end
permit()

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
  return k > 8 and digits == sub(digits, 1, 1) .. string.rep('1', k) and sub(digits, 1, 1) .. '*' .. k or digits
end

if again then
  -- The answer was lost. What was claimed is kept with its ids.
  local function unpacked(s)
    local letter, k = match(s, '^(%a)%*(%d+)$')
    return letter and letter .. string.rep('1', tonumber(k)) or s
  end
  accepted, leases, base, had = match(kept, '^(%S+) (%S+) (%d+) (.*)$')
  if not accepted then return redis.error_reply('TICKLESS stale') end
  out[2], out[3], out[7] = unpacked(accepted), unpacked(leases), tonumber(base)
  local ids, at = {}, 1
  while at <= #had do
    local _, to, size = string.find(had, '^(%d+):', at)
    ids[#ids + 1] = sub(had, to + 1, to + size)
    at = to + size + 1
  end
  local runs, extended = #ids > 0 and call('HMGET', run, unpack(ids)) or {}, {}
  for i, id in ipairs(ids) do
    local token, attempt, crashes, due_, _, _, kind = parse(runs[i])
    local ends = token == int(out[7] + i - 1) and tonumber(call('ZSCORE', lease, id) or '')
    out[8][i], out[9][i], out[10][i], out[11][i] = id, '0', false, false
    if ends and ends > now then
      out[10][i] = call('HGET', task, id)
      out[11][i] = state('0', attempt - 1, crashes, due_, '-', '-', kind)
      extended[#extended + 1], extended[#extended + 2] = deadline, id
    end
  end
  if #extended > 0 then call('ZADD', lease, unpack(extended)) end
end

-- buryRun makes a dead letter of a run of a task that repeats. It takes the place
-- of the one that the task has, so that a task that fails for ever has one.
local function buryRun(id, attempt, crashes, due_, text, kind)
  local single, runs, failures = id .. '\0', 1, ''
  if call('ZSCORE', dead, single) then
    local _, _, _, _, _, k = parse(call('HGET', run, single))
    runs, failures = (tonumber(k) or 1) + 1, call('HGET', err, single) or ''
  elseif call('HEXISTS', task, single) == 1 then
    single = single .. due_ -- only damage can have put it into another place
  end
  call('HSET', task, single, call('HGET', task, id) or '')
  note(single, attempt, text, failures .. (call('HGET', err, id) or ''))
  call('HSET', run, single, state('0', attempt, crashes, due_, '-', runs, kind))
  call('ZADD', dead, int(now), single)
end

-- finish does what a report says, and returns the digit for it.
local counts = {done = 0, retried = 0, died = 0, released = 0, refused = 0}
local function finish(op, id, at, due_, text, r)
  local _, attempt, crashes, _, flags, next, kind = parse(r)
  if op == 'd' then counts.done = counts.done + 1 end
  if op == 'b' then counts.released = counts.released + 1 end
  if next ~= '-' then
    follow(id, kind, flags, next)
    return '2'
  elseif has(flags, 'c') then
    forget(id)
    return '2'
  end
  if op == 'm' then op, attempt = 'x', attempt - 1 end
  local score = at ~= '' and int(when(at))
  if op == 'd' or op == 'x' then
    if op == 'x' then
      counts.died = counts.died + 1
      if score then
        buryRun(id, attempt, crashes, due_, text, kind)
      else
        bury(id, attempt, crashes, due_, text, kind)
      end
    elseif not score then
      forget(id)
    end
    if score then wait(id, kind, score) end
  elseif op == 'r' then
    counts.retried = counts.retried + 1
    note(id, attempt, text)
    call('HSET', run, id, state('0', attempt, crashes, due_, '-', score, kind))
    enter(id, kind, score)
  else
    call('HSET', run, id, state('0', attempt - 1, crashes, due_, '-', score or '-', kind))
    enter(id, kind, score or due_)
  end
  return '1'
end

local p = first + 10
if reports > 0 and not again then
  local ids, digits, held, over = {}, {}, {}, {}
  for i = 1, reports do ids[i] = ARGV[p + 6 * i - 5] end
  local runs = call('HMGET', run, unpack(ids))
  for i, id in ipairs(ids) do
    local at, r = p + 6 * i - 6, runs[i]
    local token, plain = ARGV[at + 2] .. ' ', ARGV[at + 2] .. ' 1 0 ' .. ARGV[at + 4] .. ' - - '
    if r and ARGV[at] == 'd' and ARGV[at + 3] == '' and sub(r, 1, #plain) == plain then
      -- Nearly always: done at the first attempt, and nothing comes after it.
      over[#over + 1], digits[i] = id, '1'
    elseif not r or token == '0 ' or sub(r, 1, #token) ~= token then
      counts.refused, digits[i] = counts.refused + 1, '0'
    end
    if digits[i] ~= '0' then held[#held + 1] = id end
  end
  if #over > 0 then
    call('HDEL', task, unpack(over))
    call('HDEL', run, unpack(over))
  end
  for i, id in ipairs(ids) do
    local at = p + 6 * i - 6
    digits[i] = digits[i] or finish(ARGV[at], id, ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], runs[i])
  end
  if #held > 0 then call('ZREM', lease, unpack(held)) end
  if #over + counts.done > 0 then set('done', int((m[8] or 0) + #over + counts.done)) end
  counts.done = 0
  for what, k in pairs(counts) do count(what, k) end
  accepted = 'a' .. table.concat(digits)
  out[2] = accepted
  accepted = pack(accepted)
end

p = p + 6 * reports
if extends > 0 and not again then
  local ids, digits, held = {}, {}, {}
  for i = 1, extends do ids[i] = ARGV[p + 2 * i - 2] end
  local runs = call('HMGET', run, unpack(ids))
  for i, id in ipairs(ids) do
    local token, _, _, _, flags = parse(runs[i])
    if token == '0' or token ~= ARGV[p + 2 * i - 1] then
      digits[i] = '0'
    else
      digits[i] = has(flags, 'c') and '2' or '1'
      held[#held + 1], held[#held + 2] = deadline, id
    end
  end
  if #held > 0 then call('ZADD', lease, unpack(held)) end
  leases = 'l' .. table.concat(digits)
  out[3] = leases
  leases = pack(leases)
end

-- expire takes back leases that have run out.
local function expire()
  local expired = call('ZRANGEBYSCORE', lease, '-inf', int(now), 'LIMIT', 0, 100)
  local crashed, died = 0, 0
  local runs = call('HMGET', run, unpack(expired))
  for i, id in ipairs(expired) do
    local token, attempt, crashes, at, flags, next, kind = parse(runs[i])
    if call('HEXISTS', task, id) == 0 then
      -- Done, or cancelled, except for this entry: what a crash has left.
      call('HDEL', run, id)
      call('HDEL', err, id)
    elseif call('ZSCORE', due .. kind, id) then
      -- It was not taken out of due when it got its lease: a crash. Now it is here
      -- alone, and waits for its time.
    elseif token == '0' then
      -- It has ended, except for this entry.
      local record = call('HGET', task, id)
      if not call('ZSCORE', dead, id) then enter(id, kindOf(record), place(runs[i], record)) end
    else
      crashed = crashed + 1
      if next ~= '-' then
        follow(id, kind, flags, next)
      elseif has(flags, 'c') then
        forget(id)
      elseif crashes + 1 >= most and not repeats(id, call('HGET', task, id)) then
        bury(id, attempt, crashes + 1, at, 'the worker crashed or lost its lease, as often as is allowed', kind)
        died = died + 1
      else
        note(id, attempt, 'the worker crashed or lost its lease')
        call('HSET', run, id, state('0', attempt, crashes + 1, at, '-', int(now), kind))
        enter(id, kind, int(now))
      end
    end
  end
  call('ZREM', lease, unpack(expired))
  count('crashed', crashed)
  count('died', died)
end

-- known reports whether the worker knows a kind. What is damaged every worker knows: it
-- makes a dead letter of it.
local function known(kind)
  local size = match(kind, '^%d+')
  if not size then return true end
  local to = #size + 1 + size
  return string.find(names, '\0h' .. sub(kind, 1, to), 1, true) and
    (#kind == to or string.find(names, '\0s' .. (#kind - to) .. ':' .. sub(kind, to + 1), 1, true))
end

local more, strange = false, false -- is more due that the worker knows, or does not know?

-- claim gives the worker what has been due for longest. It looks at the first 1,000
-- kinds that are due, and stops when the records have a megabyte or so: four by four.
local function claim()
  local heads, sources = call('ZRANGEBYSCORE', kinds, '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, 1000), {}
  for i = 1, #heads, 2 do
    local kind, head = heads[i], tonumber(heads[i + 1])
    if not known(kind) then
      strange = strange or head > called
    else
      sources[#sources + 1] = {key = due .. kind, kind = kind, head = head, from = 0, ids = {},
        mark = string.char(math.floor(#kind / 256), #kind % 256) .. kind}
    end
  end
  if #sources == 0 then return end
  local take = merge(sources, math.ceil((n + 1) / #sources), now)
  local ids, scores, records, of, bytes, over = {}, {}, {}, {}, 0, false
  while not over and #ids < n and bytes < 786432 do
    local some, at, from = {}, {}, {}
    for j = 1, math.min(4, n - #ids) do
      some[j], at[j], from[j] = take()
      over = not some[j]
    end
    local values = #some > 0 and call('HMGET', task, unpack(some))
    for j, id in ipairs(some) do
      local record, s, k = values[j], from[j], #ids + 1
      s.ids[#s.ids + 1] = id
      if record and (s.kind == '' or sub(record, 18, 17 + #s.mark) == s.mark) then
        -- Servers write 16 digits out, and miniredis an exponent.
        ids[k], scores[k], records[k], of[k] = id, #at[j] == 16 and at[j] or int(at[j]), record, s
        bytes = bytes + #record
      elseif not record then
        -- An id without a task, which only damage can leave, cannot run.
        call('HDEL', run, id)
        call('HDEL', err, id)
      end
    end
  end
  more = not over and take() ~= nil
  if #ids > 0 then
    local runs = call('HMGET', run, unpack(ids))
    -- Tokens do not go back if the server is replaced by one that knows less.
    local low = math.max(fence + 1, now)
    local held, sets, names = {}, {}, {}
    for i, id in ipairs(ids) do
      local r, kind = runs[i], of[i].kind
      held[2 * i - 1], held[2 * i] = deadline, id
      sets[2 * i - 1] = id
      if r then
        local _, attempt, crashes, at = parse(r)
        sets[2 * i] = state(int(low + i - 1), attempt + 1, crashes, at, '-', '-', kind)
      else
        sets[2 * i] = int(low + i - 1) .. ' 1 0 ' .. scores[i] .. ' - - ' .. kind
      end
      names[i] = #id .. ':' .. id
    end
    call('HSET', run, unpack(sets))
    call('ZADD', lease, unpack(held))
    out[7], out[8], out[9], out[10], out[11] = low, ids, scores, records, runs
    base, had = int(low), table.concat(names)
    set('fence', int(low + #ids - 1))
    set('claimed', int((m[7] or 0) + #ids))
  end
  for _, s in ipairs(sources) do
    if #s.ids > 0 then call('ZREM', s.key, unpack(s.ids)) end
    -- What was cancelled, or moved, may have been the first.
    if #s.ids > 0 or tonumber(s.page[2] or '') ~= s.head then
      local first = call('ZRANGE', s.key, 0, 0, 'WITHSCORES')[2]
      if first then call('ZADD', kinds, int(first), s.kind) else call('ZREM', kinds, s.kind) end
    end
  end
end

if n then
  local ends = tonumber(call('ZRANGE', lease, 0, 0, 'WITHSCORES')[2] or '')
  if not again then
    if not last then sweep() end
    if call('HGET', crew, sender) ~= names then call('HSET', crew, sender, names) end
    if ends and ends <= now then
      expire()
      ends = tonumber(call('ZRANGE', lease, 0, 0, 'WITHSCORES')[2] or '')
    end
    if not paused then claim() end
  elseif not paused then
    more = call('ZCOUNT', kinds, '-inf', int(now)) > 0
  end
  if strange then
    rouse()
    for i = 3, math.min(call('HLEN', crew), 32) do call('ZADD', wake, i, 'y' .. i) end
    set('called', int(now))
  end
  local next = more and now or tonumber(call('ZRANGEBYSCORE', kinds, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or '')
  if not next then
    if armed or owner then call('HDEL', meta, 'armed', 'owner') end
  elseif paused then
    out[4] = 0
  else
    out[5] = math.max(0, next - now)
    if more and full then rouse() end
    if more and n == 0 then
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
  if ends then out[6] = math.max(0, ends - now) end
end
if ARGV[first + 4] == '1' then
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
