-- change N [SENDER]... KIND ... carries out N commands of clients, and answers with a
-- string for each: the outcomes, a digit each behind an o, or stale, or late. One string
-- alone is that of all. If KIND is empty then there follow, for each command with its K
-- items,
--
--   NUMBER UNTIL OP K [ITEM]...
--
-- The ops and their items are
--
--   s        schedule: ID WHEN RECORD. sn, se, sl keep what is there: always, unless
--            the new one is earlier, unless it is later.
--   r        reschedule: ID WHEN GENERATION
--   c        cancel: ID
--   q        requeue: ID WHEN GENERATION
--   x        purge: ID
--   i        import: ID PLACE AT RECORD ATTEMPTS CRASHES DUE RUNS FAILURES
--   p, g     pause, and go on; without items
--
-- A GENERATION takes the place of the bytes behind the first of the caller's, of what is
-- pending then with nothing tried; empty, they stay.
--
-- A WHEN that begins with a plus sign counts from now, and then a record has no time in
-- front. Commands that may need memory, which are s and i, come without others, and
-- without each other: what s knows of its tasks is from before.
--
-- Commands that all schedule one task each come in less room: KIND is the op, and there
-- follow the earliest UNTIL, or nothing, and NUMBER ID RECORD for each. In front of the
-- record stands WHEN, of 17 bytes with a plus sign, or 16. An UNTIL of its own a command
-- has behind its number and a blank.
--
-- A command that comes for the second time gets the answer that it had. One that was
-- overtaken by the sender's next is not carried out any more: its sender does not wait
-- for it.
--also unpack(ARGV, 3, 2 + ARGV[2])
--include clock.lua
local n, byte, sub = tonumber(ARGV[2]), string.byte, string.sub
local ARGV = ARGV -- a global is looked up each time
local kind, first, argv = ARGV[3 + n], 4 + n, ARGV -- first of the commands' arguments in argv

-- One task alone that the shard does not know, from a sender that it has met, is what
-- happens most.
if n == 1 and kind ~= '' and m[3] then
  local number, id, record, ending = ARGV[6], ARGV[7], ARGV[8], ARGV[5]
  if ending ~= '' then number = string.match(number, '^%d+') end
  -- The same number of digits, of which the first that differs is less, in any locale.
  -- A number with one digit more takes the longer way.
  if byte(m[3], #number + 1) == 32 and m[3] < number and (ending == '' or now <= tonumber(ending)) and call('HEXISTS', run, id) == 0 then
    local at
    if byte(record, 1, 1) == 43 then -- a plus sign
      at = string.format('%016.0f', math.min(now + tonumber(sub(record, 2, 17)), 7258118399999999))
      record = at .. sub(record, 18)
    else
      at = sub(record, 1, 16)
    end
    if call('HSETNX', task, id, record) == 1 then
      call('ZADD', due, at, id)
      local answer = number .. ' ' .. clock[1] .. '000000 o2' -- in seconds, which takes less
      if not armed then
        -- Nobody watches. Who is roused now will, for this moment; what is due later
        -- rouses nobody until then.
        rouse()
        call('HSET', meta, ARGV[3], answer, 'armed', at)
      else
        if tonumber(at) < armed then rouse() end
        call('HSET', meta, ARGV[3], answer)
      end
      return 'o2'
    end
  end
end

-- And so are several of them.
if n > 1 and kind ~= '' then
  local ids, adds, sets, fields, soonest = {}, {}, {}, {}, 1e16
  local plain, seen, answer, p, ending = true, {}, ' ' .. clock[1] .. '000000 o2', first + 1, ARGV[first]
  if ending ~= '' and now > tonumber(ending) then plain = false end
  for i = 1, n do
    local number, id, record, last = ARGV[p], ARGV[p + 1], ARGV[p + 2], m[2 + i]
    if ending ~= '' then number = string.match(number, '^%d+') end
    if not last or seen[id] or byte(last, #number + 1) ~= 32 or not (last < number) then
      plain = false
      break
    end
    seen[id] = true
    local at
    if byte(record, 1, 1) == 43 then -- a plus sign
      at = string.format('%016.0f', math.min(now + tonumber(sub(record, 2, 17)), 7258118399999999))
      record = at .. sub(record, 18)
    else
      at = sub(record, 1, 16)
    end
    local score = tonumber(at)
    if score < soonest then soonest = score end
    ids[i] = id
    local k = 2 * i
    adds[k - 1], adds[k] = at, id
    sets[k - 1], sets[k] = id, record
    fields[k - 1], fields[k] = ARGV[2 + i], number .. answer
    p = p + 3
  end
  if plain then
    local records, runs = call('HMGET', task, unpack(ids)), call('HMGET', run, unpack(ids))
    for i = 1, n do
      if records[i] or runs[i] then
        plain = false
        break
      end
    end
  end
  if plain then
    call('HSET', task, unpack(sets))
    call('ZADD', due, unpack(adds))
    if not armed then -- as above
      fields[2 * n + 1], fields[2 * n + 2] = 'armed', int(soonest)
    end
    if not armed or soonest < armed then rouse() end
    call('HSET', meta, unpack(fields))
    return 'o2'
  end
end

if kind ~= '' then
  -- As if they had come in the other form.
  local p = first + 1
  argv = {}
  for i = 1, n do
    local number, ending = string.match(ARGV[p], '^(%d+) ?(%d*)$')
    local k, record = 7 * i - 6, ARGV[p + 2]
    argv[k], argv[k + 1], argv[k + 2], argv[k + 3], argv[k + 4] = number, ending, kind, '1', ARGV[p + 1]
    if byte(record, 1, 1) == 43 then
      argv[k + 5], argv[k + 6] = sub(record, 1, 17), sub(record, 18)
    else
      argv[k + 5], argv[k + 6] = sub(record, 1, 16), record
    end
    p = p + 3
  end
  first = 1
end

--include lib.lua

local absent, created, replaced, kept, following, moved, removed, stopping = 1, 2, 3, 4, 5, 6, 7, 8
local width = {s = 3, r = 3, c = 1, q = 3, x = 1, i = 9, p = 0, g = 0}
local asides = call('ZCARD', aside)

-- pending returns when a task is due that waits, or nil.
local function pending(id)
  return tonumber(call('ZSCORE', due, id) or asides > 0 and call('ZSCORE', aside, id) or '')
end

-- back takes a task out of aside, of which this is the record.
local function back(id, record)
  local score = asides > 0 and call('ZSCORE', aside, id)
  if not score then return end
  call('ZREM', aside, id)
  local kind = kindOf(record)
  if kind then call('ZREM', kinds, entryOf(kind, score, id)) end
end

local adds, sets, soonest, fresh, filled = {}, {}, nil, {}, 0
local function write()
  if filled == 0 then return end
  call('HSET', task, unpack(sets))
  call('ZADD', due, unpack(adds))
  adds, sets, filled = {}, {}, 0
end

-- schedule schedules a task that the shard knows.
local function schedule(id, score, record, mode)
  local there = pending(id)
  local r = call('HGET', run, id)
  if there then
    if mode == 'sn' or mode == 'se' and score >= there or mode == 'sl' and score <= there then
      return kept
    end
  elseif r then
    if mode == 'sn' then return kept end
    local token, attempt, crashes, at, flags, next = parse(r)
    if token ~= '0' then
      local there = tonumber(next)
      if there and (mode == 'se' and score >= there or mode == 'sl' and score <= there) then
        return kept
      end
      -- The record of what runs stays: the answer that gave it to a worker may be
      -- lost, and is given again.
      call('HSET', task, id .. '\0new', record)
      flags = has(flags, 'c') and 'cn' or 'n'
      call('HSET', run, id, state(token, attempt, crashes, at, flags, int(score)))
      return following
    end
  end
  local old = asides > 0 and call('HGET', task, id)
  call('HSET', task, id, record)
  if r then
    call('HDEL', run, id)
    call('HDEL', err, id)
  end
  call('ZADD', due, int(score), id)
  if r and not there then call('ZREM', dead, id) end
  back(id, old)
  watch(score)
  return (there or r) and replaced or created
end

-- renewed returns a record with another generation, due at a time, or nil if there is none
-- or no room for it.
local function renewed(record, generation, score)
  local kind = generation ~= '' and kindOf(record)
  if not kind then return nil end
  local from = 18 + #kind
  if #record < from + #generation then return nil end
  return string.format('%016.0f', score) .. sub(record, 17, from) .. generation .. sub(record, from + #generation + 1)
end

local function reschedule(id, score, generation)
  local r = call('HGET', run, id)
  local token, attempt, crashes, at, flags = parse(r)
  if pending(id) then
    if r and (attempt > 0 or crashes > 0) then
      call('HSET', run, id, state('0', attempt, crashes, at, '-', int(score)))
    else
      -- What has not been tried is due then, and was not due before.
      local record = generation ~= '' and renewed(call('HGET', task, id), generation, score)
      if record then call('HSET', task, id, record) end
      call('HSET', run, id, state('0', 0, 0, int(score), '-', '-'))
    end
    call('ZADD', due, int(score), id)
    if asides > 0 then back(id, call('HGET', task, id)) end
    watch(score)
    return moved
  end
  if token == '0' then return absent end
  if generation ~= '' then
    local beside = id .. '\0new'
    local record = renewed(call('HGET', task, has(flags, 'n') and beside or id), generation, score)
    if record then
      call('HSET', task, beside, record)
      flags = has(flags, 'c') and 'cn' or 'n'
    end
  end
  call('HSET', run, id, state(token, attempt, crashes, at, flags, int(score)))
  return following
end

local cancelled = 0
local function cancel(id)
  if pending(id) then
    local record = asides > 0 and call('HGET', task, id)
    forget(id)
    call('ZREM', due, id)
    back(id, record)
    cancelled = cancelled + 1
    return removed
  end
  local token, attempt, crashes, at, flags = parse(call('HGET', run, id))
  if token == '0' then return absent end
  call('HSET', run, id, state(token, attempt, crashes, at, 'c', '-'))
  if has(flags, 'n') then call('HDEL', task, id .. '\0new') end
  if not has(flags, 'c') then cancelled = cancelled + 1 end
  return stopping
end

-- requeue makes a pending task of a dead letter. One of a repeating task gets an id of
-- its own, so that the next of its runs that dies finds the place free.
local function requeue(id, score, generation)
  if not call('ZSCORE', dead, id) then return absent end
  if byte(id, -1) == 0 then
    local _, _, _, at = parse(call('HGET', run, id))
    local single, free = id .. at, tonumber(now)
    while call('HEXISTS', task, single) == 1 do
      single, free = id .. int(free), free + 1
    end
    local record = call('HGET', task, id) or ''
    local kind = kindOf(record)
    if kind then -- without its schedule
      local a, b = byte(kind, 1, 2)
      record = string.sub(record, 1, 19) .. '\0\0' .. string.sub(kind, 5, 4 + a * 256 + b) .. string.sub(record, 18 + #kind)
    end
    call('HSET', task, single, renewed(record, generation, score) or record)
    wait(single, int(score))
    forget(id)
  else
    local record = generation ~= '' and renewed(call('HGET', task, id), generation, score)
    if record then call('HSET', task, id, record) end
    wait(id, int(score))
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
  call('HSET', task, id, string.format('%016.0f', tonumber(due_)) .. record)
  if failures ~= '' then call('HSET', err, id, failures) end
  local next = at ~= due_ and at or '-'
  if into == 'dead' then next = runs ~= '0' and runs or '-' end
  call('HSET', run, id, state('0', attempts, crashes, due_, '-', next))
  if into == 'dead' then
    call('ZADD', dead, at, id)
  else
    call('ZADD', due, at, id)
    watch(tonumber(at))
  end
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

-- What the shard knows of the tasks that are to be scheduled: new ones are written
-- together.
local places, runs, besides, k = {}, {}, {}, 0 -- k of them are behind
do
  local ids, p = {}, first
  for _ = 1, n do
    local op, items = argv[p + 2], tonumber(argv[p + 3])
    p = p + 4
    if byte(op, 1, 1) == 115 then
      for i = 1, items do ids[#ids + 1] = argv[p + 3 * i - 3] end
    end
    p = p + width[string.sub(op, 1, 1)] * items
  end
  if #ids > 0 then
    places, runs = call('ZMSCORE', due, unpack(ids)), call('HMGET', run, unpack(ids))
    if asides > 0 then besides = call('ZMSCORE', aside, unpack(ids)) end
  end
end

local function schedules(op, items, p, k)
  local out = {}
  for i = 1, items do
    local id, at, record = argv[p], argv[p + 1], argv[p + 2]
    p, k = p + 3, k + 1
    local score
    if byte(at, 1, 1) == 43 then
      score = when(at)
      at = string.format('%016.0f', score)
      record = at .. record
    else
      score = tonumber(at)
    end
    if not places[k] and not runs[k] and not besides[k] and not fresh[id] then
      fresh[id] = true
      adds[filled + 1], adds[filled + 2] = at, id
      sets[filled + 1], sets[filled + 2] = id, record
      filled = filled + 2
      if not soonest or score < soonest then soonest = score end
      out[i] = created
    else
      -- The same id again in a batch: what is there so far has to be written.
      if fresh[id] then write() end
      out[i] = schedule(id, score, record, op)
    end
  end
  return out
end

local lasts, answers, met, p, dirty = {}, {}, true, first, false
for i = 1, n do
  lasts[ARGV[2 + i]] = m[2 + i]
  met = met and m[2 + i]
end
for i = 1, n do
  local sender, number, ending, op, items = ARGV[2 + i], argv[p], argv[p + 1], argv[p + 2], tonumber(argv[p + 3])
  p = p + 4
  local from, letter, behind = p, string.sub(op, 1, 1), k
  p = p + width[letter] * items
  if letter == 's' then k = k + items end
  local before, answer = string.match(lasts[sender] or '', '^(%d+) %d+ (.*)$')
  if before and (#number < #before or #number == #before and number < before) then
    answers[i] = 'stale'
  elseif before == number then
    -- It is written once more, for a WAIT that follows is to wait for what was done
    -- then, and allowed on a full server.
    if not dirty then permit() end
    dirty = true
    lasts[sender] = number .. ' ' .. int(now) .. ' ' .. answer
    local digit, k = string.match(answer, '^o%*(%d) (%d+)$')
    answers[i] = digit and 'o' .. string.rep(digit, tonumber(k)) or answer
  elseif ending ~= '' and now > tonumber(ending) then
    answers[i] = 'late'
  else
    local out = {}
    if letter == 's' then
      out = schedules(op, items, from, behind)
    elseif letter == 'i' then
      for j = 0, items - 1 do out[j + 1] = take(unpack(argv, from + 9 * j, from + 9 * j + 8)) end
    else
      permit()
      if letter == 'p' or letter == 'g' then pause(letter == 'p') end
      for j = 1, items do
        local at = from + width[letter] * (j - 1)
        local id = argv[at]
        if letter == 'r' then
          out[j] = reschedule(id, when(argv[at + 1]), argv[at + 2])
        elseif letter == 'c' then
          out[j] = cancel(id)
        elseif letter == 'q' then
          out[j] = requeue(id, when(argv[at + 1]), argv[at + 2])
        else
          out[j] = purge(id)
        end
      end
    end
    dirty = true
    local digits = table.concat(out) .. '' -- in miniredis, concatenating one number gives a number
    answers[i] = 'o' .. digits
    if items > 8 and digits == string.rep(string.sub(digits, 1, 1), items) then
      digits = '*' .. string.sub(digits, 1, 1) .. ' ' .. items
    end
    lasts[sender] = number .. ' ' .. int(now) .. ' o' .. digits
  end
end
write()
if soonest then watch(soonest) end
count('cancelled', cancelled)
if not met then sweep() end
if dirty then
  local fields = {}
  for sender, last in pairs(lasts) do
    if last then fields[#fields + 1], fields[#fields + 2] = sender, last end
  end
  call('HSET', meta, unpack(fields))
end
return answers
