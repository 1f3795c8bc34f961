-- change carries out commands of clients, and answers with a string for each: the
-- outcomes, a digit each behind an o, or stale, or late. The fields of meta are the
-- senders. There follow, for each command,
--
--   "NUMBER UNTIL OP K" and K items
--
-- The ops and their items are
--
--   s        schedule: ID, and WHEN with the RECORD behind it. sn, se, sl keep what is
--            there: always, unless the new one is earlier, unless it is later.
--   r        reschedule: ID WHEN GENERATION
--   c        cancel: ID
--   q        requeue: ID WHEN GENERATION
--   x        purge: ID
--   i        import: ID PLACE AT RECORD ATTEMPTS CRASHES DUE RUNS FAILURES
--   p, g     pause, and go on; without items
--
-- A WHEN is 16 digits, or a plus sign and 16 digits that count from now. A GENERATION
-- takes the place of the bytes behind the first of the caller's, of what is pending then
-- with nothing tried; empty, they stay. Records that are imported have no time in front.
--
-- Commands that may need memory, which are s and i, come without others, and without each
-- other: what s knows of its tasks is from before.
--
-- A command that comes for the second time gets the answer that it had. One that was
-- overtaken by the sender's next is not carried out any more: its sender does not wait
-- for it.
local n = tonumber(ARGV[2])

-- timed takes a WHEN and the record behind it, and returns the time and the record.
local function timed(s)
  if byte(s, 1, 1) ~= 43 then return sub(s, 1, 16), s end
  local at = string.format('%016.0f', math.min(now + tonumber(sub(s, 2, 17)), 7258118399999999))
  return at, at .. sub(s, 18)
end

-- One task alone that the shard does not know, from a sender that it has met, is what
-- happens most.
if n == 1 and m[3] then
  local number, ending = match(ARGV[first], '^(%d+) (%d*) s%l? 1$')
  -- Strings of one length compare in any locale.
  if number and byte(m[3], #number + 1, #number + 1) == 32 and m[3] < number and (ending == '' or now <= tonumber(ending)) then
    local id = ARGV[first + 1]
    local at, record = timed(ARGV[first + 2])
    if call('HSETNX', task, id, record) == 1 then
      local kind, answer = kindOf(record), number .. ' ' .. clock[1] .. '000000 o2' -- in seconds, which takes less
      call('ZADD', kinds, 'LT', at, kind)
      call('ZADD', due .. kind, at, id)
      if not armed or tonumber(at) < armed then rouse() end
      if armed then
        call('HSET', meta, ARGV[3], answer)
      else
        -- Nobody watches. Who is roused now will, for this moment; what is due later
        -- rouses nobody until then.
        call('HSET', meta, ARGV[3], answer, 'armed', at)
      end
      return {'o2'}
    end
  end
end

--include lib.lua

local absent, created, replaced, kept, following, moved, removed, stopping = 1, 2, 3, 4, 5, 6, 7, 8
local width = {s = 2, r = 3, c = 1, q = 3, x = 1, i = 9, p = 0, g = 0}

-- find returns what there is of a task: when it is due if it waits, and its run.
local function find(id, record)
  local r = call('HGET', run, id)
  local token, attempt, crashes, at, flags, next, kind = parse(r)
  if not r then kind = kindOf(record or call('HGET', task, id)) end
  return tonumber(call('ZSCORE', due .. kind, id) or ''), kind, r, token, attempt, crashes, at, flags, next
end

-- New tasks are written together.
local adds, sets, fresh = {}, {}, {}
local function write()
  if #sets == 0 then return end
  call('HSET', task, unpack(sets))
  for kind, list in pairs(adds) do
    call('ZADD', kinds, 'LT', int(list.soonest), kind)
    call('ZADD', due .. kind, unpack(list))
    watch(list.soonest)
  end
  adds, sets = {}, {}
end

local function add(id, at, record)
  local kind, score = kindOf(record), tonumber(at)
  local list = adds[kind]
  if not list then
    list = {soonest = score}
    adds[kind] = list
  end
  if score < list.soonest then list.soonest = score end
  local k = #list
  list[k + 1], list[k + 2] = at, id
  k = #sets
  sets[k + 1], sets[k + 2] = id, record
  fresh[id] = true
  return created
end

-- schedule schedules a task that the shard knows.
local function schedule(id, at, record, mode)
  local score = tonumber(at)
  local there, old, r, token, attempt, crashes, due_, flags, next = find(id)
  local new = kindOf(record)
  if there then
    if mode == 'sn' or mode == 'se' and score >= there or mode == 'sl' and score <= there then
      return kept
    end
  elseif r then
    if mode == 'sn' then return kept end
    if token ~= '0' then
      local there = tonumber(next)
      if there and (mode == 'se' and score >= there or mode == 'sl' and score <= there) then
        return kept
      end
      -- The record of what runs stays: the answer that gave it to a worker may be
      -- lost, and is given again.
      call('HSET', follows, id, record)
      flags = has(flags, 'c') and 'cn' or 'n'
      call('HSET', run, id, state(token, attempt, crashes, due_, flags, int(score), old))
      return following
    end
  end
  enter(id, new, at)
  call('HSET', task, id, record)
  if r then
    call('HDEL', run, id)
    call('HDEL', err, id)
  end
  if there and new ~= old then
    call('ZREM', due .. old, id)
  elseif r and not there then
    call('ZREM', dead, id)
  end
  return (there or r) and replaced or created
end

-- renewed returns a record with another generation, due at a time, or nil if there is none
-- or no room for it.
local function renewed(record, generation, score)
  local kind = kindOf(record)
  local from = 20 + #kind
  if generation == '' or kind == '' or #record < from + #generation then return nil end
  return string.format('%016.0f', score) .. sub(record, 17, from) .. generation .. sub(record, from + #generation + 1)
end

local function reschedule(id, score, generation)
  local there, kind, r, token, attempt, crashes, at, flags = find(id)
  if there then
    if r and (attempt > 0 or crashes > 0) then
      call('HSET', run, id, state('0', attempt, crashes, at, '-', int(score), kind))
    else
      -- What has not been tried is due then, and was not due before.
      local record = generation ~= '' and renewed(call('HGET', task, id), generation, score)
      if record then call('HSET', task, id, record) end
      call('HSET', run, id, state('0', 0, 0, int(score), '-', '-', kind))
    end
    enter(id, kind, int(score))
    return moved
  end
  if token == '0' then return absent end
  if generation ~= '' then
    local record = renewed(call('HGET', has(flags, 'n') and follows or task, id), generation, score)
    if record then
      call('HSET', follows, id, record)
      flags = has(flags, 'c') and 'cn' or 'n'
    end
  end
  call('HSET', run, id, state(token, attempt, crashes, at, flags, int(score), kind))
  return following
end

local cancelled = 0
local function cancel(id)
  local there, kind, _, token, attempt, crashes, at, flags = find(id)
  if there then
    forget(id)
    call('ZREM', due .. kind, id)
    cancelled = cancelled + 1
    return removed
  end
  if token == '0' then return absent end
  call('HSET', run, id, state(token, attempt, crashes, at, 'c', '-', kind))
  if has(flags, 'n') then call('HDEL', follows, id) end
  if not has(flags, 'c') then cancelled = cancelled + 1 end
  return stopping
end

-- requeue makes a pending task of a dead letter. One of a repeating task gets an id of
-- its own, so that the next of its runs that dies finds the place free.
local function requeue(id, score, generation)
  if not call('ZSCORE', dead, id) then return absent end
  local record = call('HGET', task, id) or ''
  local kind = kindOf(record)
  if byte(id, -1, -1) == 0 then
    local _, _, _, at = parse(call('HGET', run, id))
    local single, free = id .. at, tonumber(now)
    while call('HEXISTS', task, single) == 1 do
      single, free = id .. int(free), free + 1
    end
    if kind ~= '' then -- without its schedule
      local from, size = 20 + #kind, match(kind, '^%d+')
      kind = sub(kind, 1, #size + 1 + size)
      record = sub(record, 1, 17) .. string.char(math.floor(#kind / 256), #kind % 256) .. kind .. sub(record, from)
    end
    call('HSET', task, single, renewed(record, generation, score) or record)
    wait(single, kind, int(score))
    forget(id)
  else
    record = renewed(record, generation, score)
    if record then call('HSET', task, id, record) end
    wait(id, kind, int(score))
  end
  call('ZREM', dead, id)
  return moved
end

local function purge(id)
  if not call('ZSCORE', dead, id) then return absent end
  forget(id)
  call('ZREM', dead, id)
  return removed
end

-- take takes over an entry of another store.
local function take(id, into, at, record, attempts, crashes, due_, runs, failures)
  if call('HEXISTS', task, id) == 1 or call('HEXISTS', run, id) == 1 then return kept end
  at = int(when(at))
  if due_ == '' then due_ = at end
  record = string.format('%016.0f', tonumber(due_)) .. record
  call('HSET', task, id, record)
  if failures ~= '' then call('HSET', err, id, failures) end
  local kind, next = kindOf(record), at ~= due_ and at or '-'
  if into == 'dead' then next = runs ~= '0' and runs or '-' end
  call('HSET', run, id, state('0', attempts, crashes, due_, '-', next, kind))
  if into == 'dead' then call('ZADD', dead, at, id) else enter(id, kind, at) end
  return created
end

local function pause(on)
  if on then
    call('HSET', meta, 'paused', 1)
  else
    call('HDEL', meta, 'paused', 'armed', 'owner')
    rouse()
  end
end

-- What is to be done, and which of the tasks that are to be scheduled are there.
local commands, ids, p = {}, {}, first
for i = 1, n do
  local number, ending, op, items = match(ARGV[p], '^(%d+) (%d*) (%l+) (%d+)$')
  local letter = sub(op, 1, 1)
  items = tonumber(items)
  commands[i] = {number = number, ending = tonumber(ending), op = op, letter = letter, items = items, at = p + 1}
  if letter == 's' then
    for j = 1, items do ids[#ids + 1] = ARGV[p - 1 + 2 * j] end
  end
  p = p + 1 + width[letter] * items
end
local there, k = #ids > 0 and call('HMGET', task, unpack(ids)) or {}, 0

local function carryOut(c)
  local out, letter = {}, c.letter
  if letter ~= 's' and letter ~= 'i' then permit() end
  if letter == 'p' or letter == 'g' then pause(letter == 'p') end
  for j = 1, c.items do
    local p = c.at + width[letter] * (j - 1)
    local id = ARGV[p]
    if letter == 's' then
      local at, record = timed(ARGV[p + 1])
      if not there[k + j] and not fresh[id] then
        out[j] = add(id, at, record)
      else
        -- The same id again in a batch: what is there so far has to be written.
        if fresh[id] then write() end
        out[j] = schedule(id, at, record, c.op)
      end
    elseif letter == 'r' then
      out[j] = reschedule(id, when(ARGV[p + 1]), ARGV[p + 2])
    elseif letter == 'c' then
      out[j] = cancel(id)
    elseif letter == 'q' then
      out[j] = requeue(id, when(ARGV[p + 1]), ARGV[p + 2])
    elseif letter == 'x' then
      out[j] = purge(id)
    else
      out[j] = take(unpack(ARGV, p, p + 8))
    end
  end
  return table.concat(out) .. '' -- in miniredis, concatenating one number gives a number
end

local lasts, answers, fields, met = {}, {}, {}, true
for i = 1, n do
  lasts[ARGV[2 + i]] = m[2 + i]
  met = met and m[2 + i]
end
for i, c in ipairs(commands) do
  local sender = ARGV[2 + i]
  local before, answer = match(lasts[sender] or '', '^(%d+) %d+ (.*)$')
  if before and older(c.number, before) then
    answers[i] = 'stale'
  elseif before == c.number then
    local digit, k = match(answer, '^o%*(%d) (%d+)$')
    answers[i] = digit and 'o' .. string.rep(digit, tonumber(k)) or answer
  elseif c.ending and now > c.ending then
    answers[i] = 'late'
  else
    local digits = carryOut(c)
    answers[i] = 'o' .. digits
    if c.items > 8 and digits == string.rep(sub(digits, 1, 1), c.items) then
      digits = '*' .. sub(digits, 1, 1) .. ' ' .. c.items
    end
    lasts[sender] = c.number .. ' ' .. int(now) .. ' o' .. digits
    fields[#fields + 1], fields[#fields + 2] = sender, lasts[sender]
  end
  if c.letter == 's' then k = k + c.items end
end
write()
count('cancelled', cancelled)
if not met then sweep() end
if armed and not m[2] then fields[#fields + 1], fields[#fields + 2] = 'armed', int(armed) end
if #fields > 0 then call('HSET', meta, unpack(fields)) end
return answers
