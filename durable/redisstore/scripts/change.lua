-- change carries out commands of clients. It returns a string for each command: o and a digit
-- for each outcome, 1 to 9 and a colon for ten, or stale, or late. If all strings are the same,
-- it returns only one. The fields of meta are the senders, and then fence. The arguments are, for
-- each command,
--
--   "NUMBER UNTIL OP K W" and K items of W arguments, where
--   "NUMBER" alone stands for "NUMBER  s 1 2"
--
-- The ops and their items are
--
--   s        schedule: ID, and WHEN followed by the RECORD
--   sn       like s, but keep an existing task
--   se       like s, but keep an existing task unless the new one is due earlier
--   sl       like s, but keep an existing task unless the new one is due later
--   sm       like s, but keep an existing task that is the same
--   sU, ...  like s, sn, se, sl or sm; the keys of some tasks may be unique for a time
--   r        reschedule: ID VERSION WHEN GENERATION
--   c        cancel: ID VERSION
--   P, R     pause a task, and resume it: ID VERSION
--   q        requeue: ID VERSION WHEN GENERATION
--   x        purge: ID VERSION
--   i        import: ID PLACE AT RECORD ATTEMPTS CRASHES DUE RUNS FAILURES NEXT FLAGS, where NEXT
--            is when the task is due again after its present run, or empty, and FLAGS are p
--            and o, as in a run
--   y        sync: the set's name and its version of 19 digits, then ID, and WHEN followed by
--            the RECORD, as for sm
--   l        limit: HANDLER MOST EVERY BURST RATE, and again those of its groups, as in
--            limits.lua; all 0 for none
--   h        pause a handler: HANDLER NOTE
--   u        resume a handler: HANDLER
--   p, g     pause and resume; without items
--
-- A WHEN is 16 digits. A sign before them has a meaning:
--
--   +  the time counts from now
--   =  it is the next time of the task's own repetition: an Item with Next, as in package store
--   #  as =, for an Item with Anew
--
-- The WHEN of s can begin with a tilde, flags and a colon. The flag p pauses the task, and digits
-- are a VERSION. A command with a VERSION does nothing to a task with another one; an empty
-- VERSION fits all tasks. A GENERATION replaces the bytes after the first one from package durable,
-- if the task becomes pending without attempts; an empty one changes nothing. An imported RECORD
-- does not begin with a due time.
--
-- s, i and y may need memory. A batch has only s commands, only i commands, only y commands, or
-- only others. All its commands have different senders.
--
-- A command that comes again gets its first answer. A command is stale if its sender has
-- already sent a later command. It is not carried out, because its sender no longer waits.
local n = tonumber(ARGV[2]) - 1
local latest = math.max(tonumber(saved.fence or '0') or 0, now) -- the latest version or token
local before = saved[ARGV[3]] -- the first sender's latest command

-- The most frequent case: one new task, from a known sender.
if n == 1 and before then
  local number, ending = ARGV[first], ''
  if string.find(number, ' ', 1, true) then number, ending = match(number, '^(%d+) (%d*) s%l? 1 2$') end
  -- Strings of equal length compare correctly in any locale.
  if number and byte(before, #number + 1, #number + 1) == 32 and before < number and (ending == '' or now <= tonumber(ending)) then
    local id, record = ARGV[first + 1], ARGV[first + 2]
    local sign = byte(record, 1, 1)
    if sign == 43 then -- a plus sign
      record = string.format('%016.0f', math.min(now + tonumber(sub(record, 2, 17)), farthest)) .. sub(record, 18)
    end
    local version = string.format('%016.0f', latest + 1)
    local a, b = byte(record, 18, 19)
    local kind = sub(record, 20, 19 + a * 256 + b)
    if sign ~= 35 and sign ~= 61 and sign ~= 126 and not string.find(kind, '\0', 1, true) and call('HSETNX', task, id, record .. version) == 1 then -- no equals sign, no group
      local at, answer = sub(record, 1, 16), number .. ' ' .. clock[1] .. '000000 o2' -- whole seconds, for speed
      call('ZADD', kinds, 'LT', at, kind)
      call('ZADD', due .. kind, at, id)
      if not armed then
        -- No worker has a timer for the shard. The worker that is woken now claims, and
        -- sets its timer for the time at or earlier. Only an earlier task needs a wake-up.
        call('ZADD', wake, 0, 'w', 1, 'x') -- as wakeWorkers in lib.lua
        call('HSET', meta, ARGV[3], answer, 'fence', version, 'armed', at)
      else
        if tonumber(at) < armed then call('ZADD', wake, 0, 'w', 1, 'x') end
        call('HSET', meta, ARGV[3], answer, 'fence', version)
      end
      return 'o2'
    end
  end
end

-- timed returns the sign at the beginning of a record, if there is one, and the record with the
-- time for which a plus sign stands.
local function timed(record)
  local sign = byte(record, 1, 1)
  if sign == 43 then -- a plus sign
    record = string.format('%016.0f', math.min(now + tonumber(sub(record, 2, 17)), farthest)) .. sub(record, 18)
  elseif sign == 61 or sign == 35 then -- an equals sign or a number sign
    record = sub(record, 2)
  end
  return sign, record
end

-- newVersion returns the next version, like nextNumber in package machine. The Store sends
-- records with format 5 and without a version.
local hadLatest = latest
local function newVersion()
  latest = latest + 1
  return string.format('%016.0f', latest)
end

local p, k, sendersKnown, batchOp = first, 0, true, nil
local numbers, ops, starts, counts, widths, offsets = {}, {}, {}, {}, {}, {}
local answers, ids, outcomes = {}, {}, {}

-- Decide which commands to carry out. offsets[i] is how many entries of outcomes come before
-- those of command i. It is nil if command i is not carried out.
for i = 1, n do
  local number, ending, op, count, width = ARGV[p], '', 's', 1, 2
  if string.find(number, ' ', 1, true) then
    number, ending, op, count, width = match(number, '^(%d+) (%d*) (%a+) (%d+) (%d+)$')
    count, width = tonumber(count), tonumber(width)
  end
  local last, before = saved[ARGV[2 + i]], nil
  sendersKnown = sendersKnown and last
  if last and (byte(last, #number + 1, #number + 1) ~= 32 or last >= number) then
    before = match(last, '^%d+')
  end
  numbers[i], ops[i], starts[i], counts[i], widths[i] = number, op, p + 1, count, width
  if before == number then
    answers[i] = match(last, '^%d+ %d+ (.*)$')
  elseif before and (#number < #before or #number == #before and number < before) then
    answers[i] = 'stale'
  elseif ending ~= '' and now > tonumber(ending) then
    answers[i] = 'late'
    -- The command stays late if the clock is set back. A full server may refuse the write.
    redis.pcall('HSET', meta, ARGV[2 + i], number .. ' ' .. int(now) .. ' late')
  else
    offsets[i], batchOp = k, op == 's' and op or sub(op, 1, 1)
    if batchOp == 's' then
      for j = 1, count do ids[k + j] = ARGV[p + 2 * j - 1] end
    end
    k = k + count
  end
  p = p + 1 + count * width
end

-- Write all new tasks together. known has the tasks that may already exist.
local soonest, known, uniques = nil, {}, false
if batchOp == 's' then
  local existing, sets, adds, fresh, filled = call('HMGET', task, unpack(ids)), {}, {}, {}, 0
  local version = newVersion() -- of all new keys
  for i = 1, n do
    local from, unique = offsets[i], ops[i] ~= 's' and sub(ops[i], -1) == 'U'
    uniques = uniques or unique
    for j = 1, from and counts[i] or 0 do
      local id, record = ids[from + j], ARGV[starts[i] + 2 * j - 1]
      local guard, sign = match(record, '^~(%w*):'), nil
      if guard then record = sub(record, #guard + 3) end
      sign, record = timed(record)
      if existing[from + j] or fresh[id] or unique or sign == 61 or guard then
        fresh[id] = true
        known[#known + 1] = {from + j, id, record .. newVersion(), ops[i], sign == 61, guard}
      else
        local at, a, b = sub(record, 1, 16), byte(record, 18, 19)
        local kind, score = sub(record, 20, 19 + a * 256 + b), tonumber(at)
        local list = adds[kind]
        if not list then
          list = {soonest = score}
          adds[kind] = list
        end
        if score < list.soonest then list.soonest = score end
        local k = #list
        list[k + 1], list[k + 2] = at, id
        sets[filled + 1], sets[filled + 2] = id, record .. version
        filled = filled + 2
        fresh[id], outcomes[from + j] = true, '2'
      end
    end
  end
  if filled > 0 then
    call('HSET', task, unpack(sets))
    local grouped, places = {}, {}
    for kind, list in pairs(adds) do
      if string.find(kind, '\0', 1, true) then
        grouped[kind] = list
      else
        local k = #places
        places[k + 1], places[k + 2] = int(list.soonest), kind
        soonest = math.min(soonest or 1e16, list.soonest)
      end
    end
    if #places > 0 then call('ZADD', kinds, 'LT', unpack(places)) end
    for i = 2, #places, 2 do call('ZADD', due .. places[i], unpack(adds[places[i]])) end
    if next(grouped) then
--include group.lua
      for kind, list in pairs(grouped) do
        local ready, all = addGroupKind(kind, int(list.soonest))
        call('ZADD', all, unpack(list))
        call('ZADD', due .. kind, unpack(list))
        if ready then soonest = math.min(soonest or 1e16, list.soonest) end
      end
    end
  end
end

if batchOp ~= 's' or #known > 0 or not sendersKnown then
--include lib.lua

local absent, created, replaced, kept, following, moved, removed, stopping, once, changed = '1', '2', '3', '4', '5', '6', '7', '8', '9', ':'

-- find returns the time when a pending task is due, or nil, and then its kind, its run
-- and the words of the run.
local function find(id)
  local r = call('HGET', run, id)
  local token, attempt, crashes, at, flags, next, kind = parseRun(r)
  if not r then kind = kindOf(call('HGET', task, id)) end
  return tonumber(call('ZSCORE', due .. queueOf(kind, flags), id) or ''), kind, r, token, attempt, crashes, at, flags, next
end

--include follow.lua

local never = farthest + 1

-- touch gives a task that has been changed a new version. What follows its run has it too.
local function touch(id)
  local version = newVersion()
  for _, place in ipairs({task, follows}) do
    local record = call('HGET', place, id)
    if record then call('HSET', place, id, sub(record, 1, 16) .. '5' .. sub(content(record), 18) .. version) end
  end
end

-- isOther reports whether a task has another version than a command wants.
local function isOther(id, version)
  local record = (version or '') ~= '' and call('HGET', task, id)
  if not record then return false end
  return tonumber(byte(record, 17) == 53 and sub(record, -16) or '1') ~= tonumber(version)
end

-- repetition returns the parts of a record that say when its task is due, and the last time
-- at which it may be due, or 0, like Task.Repetition of package store.
local function repetition(record)
  local kind = kindOf(record)
  record = content(record)
  local _, _, schedule = groupOf(kind)
  local at, ends, parts = 20 + #kind, 0, {schedule or sub(kind, #match(kind .. ':', '^%d*') + 2 + (tonumber(match(kind, '^%d+')) or 0))}
  local fields = byte(record, at + 7)
  if kind == '' or not hasFields(record, kind) or not fields then return parts[1], 0 end
  at = at + 8
  local function has(bit) return math.floor(fields / bit) % 2 == 1 end
  local function number()
    local n, scale = 0, 1
    for _ = 1, 10 do
      local b = byte(record, at)
      if not b then break end
      at = at + 1
      if b < 128 then return n + b * scale end
      n, scale = n + (b - 128) * scale, scale * 128
    end
    at = #record + 1 -- damaged
    return 0
  end
  local function skip()
    local n = number()
    at = math.min(at + n, #record + 1)
  end
  local function part(read, again)
    local from = at
    read()
    if again then read() end
    parts[#parts + 1] = sub(record, from, at - 1)
  end
  if has(128) then at = math.min(at + 38, #record + 1) end
  if has(1) then
    local n = number()
    while n > 0 and at <= #record do
      skip()
      skip()
      n = n - 1
    end
  end
  if has(2) then number() end
  if has(4) then number() end
  if has(8) then part(number) end
  if has(16) then
    at = math.min(at + 1, #record + 1)
    number()
  end
  if has(32) then part(skip, true) end
  if has(64) then
    part(number)
    ends = math.min(number(), farthest)
  end
  return table.concat(parts, '\0'), ends
end

-- withFlag returns flags with the letter n, or without it if there is no new record.
local function withFlag(flags, n)
  flags = string.gsub(flags, '[-n]', '') .. (n and 'n' or '')
  return flags == '' and '-' or flags
end

-- followsAt returns when a task is due again after its present run, or nil.
local function followsAt(pendingAt, flags, next)
  local at = tonumber(pendingAt and match(flags, 'f(%d+)') or not pendingAt and next or '')
  return at and at > 0 and at or nil
end

-- runStays reports whether changes of a repeating task leave its run as it is, because the
-- run is due or has begun.
local function runStays(at, attempt, crashes) return tonumber(at) <= now or attempt > 0 or crashes > 0 end

-- changeRepeating gives a repeating task, pending or running, a new record. A run that is
-- due, being retried or running stays; score is when the task is due after it.
local function changeRepeating(id, score, record, own, over, oldRecord, oldQueue, pendingAt, old, r, token, attempt, crashes, due_, flags, next)
  local new = kindOf(record)
  local newest = hasFlag(flags, 'n') and call('HGET', follows, id) or oldRecord
  local oldPattern, oldEnd = repetition(newest)
  local newPattern, newEnd = repetition(record)
  local keepsPattern = own and oldPattern == newPattern
  local after = over and never or score
  if not pendingAt then
    if tonumber(next) == farthest then
      -- It stays paused.
    elseif not keepsPattern or oldEnd ~= newEnd then
      next = int(after)
    elseif next == '-' then
      next = '0' -- when the report says
    end
    -- Keep the record of the running attempt: a repeated claim may need it.
    call('HSET', follows, id, record)
    call('HSET', run, id, formatRun(token, attempt, crashes, due_, withFlag(flags, true), next, old))
    return following
  end
  local at, began = pendingAt, r and due_ or int(pendingAt)
  local stays = runStays(began, attempt, crashes)
  local hadRecord = hasFlag(flags, 'n')
  flags = withFlag(flags, false)
  if pendingAt == farthest or keepsPattern and (stays or newEnd == 0 or pendingAt <= newEnd) then
    -- The run keeps its time.
  elseif stays and not own and score <= math.max(now, pendingAt) then
    at = math.min(pendingAt, score)
  elseif stays then
    flags = withFlag(string.gsub(flags, 'f%d+', ''), false)
    flags = (flags == '-' and '' or flags) .. 'f' .. int(after)
  elseif over then
    forget(id)
    if hadRecord then call('HDEL', follows, id) end
    removePending(id, oldQueue)
    return removed
  else
    return nil
  end
  local newQueue = queueOf(new, flags)
  addPending(id, newQueue, int(at))
  call('HSET', task, id, string.format('%016.0f', tonumber(began)) .. sub(record, 17))
  if r or flags ~= '-' or int(at) ~= int(began) then
    call('HSET', run, id, formatRun('0', attempt, crashes, began, flags, int(at) == int(began) and '-' or int(at), new))
  end
  if hadRecord then call('HDEL', follows, id) end
  if newQueue ~= oldQueue then removePending(id, oldQueue, newQueue) end
  return replaced
end

-- schedule schedules a task that may already exist. own is Item.Next of package store, and guard
-- the flags before WHEN or nil.
local function schedule(id, at, record, mode, own, guard)
  local score = tonumber(at)
  local pendingAt, old, r, token, attempt, crashes, due_, flags, next = find(id)
  local new, over, oldQueue = kindOf(record), false, queueOf(old, flags)
  if own then
    local _, ends = repetition(record)
    over = ends > 0 and score > ends
  end
  local running = r and not pendingAt and token ~= '0'
  local function pauseIfAsked()
    if guard and hasFlag(guard, 'p') and not hasFlag(flags, 'p') then flags = (flags == '-' and '' or flags) .. 'p' end
  end
  if pendingAt or r then
    local oldAt = (pendingAt or running) and followsAt(pendingAt, flags, next) or pendingAt
    if mode == 'sn' or oldAt and (mode == 'se' and score >= oldAt or mode == 'sl' and score <= oldAt) then
      return kept
    end
    local oldRecord = (pendingAt or running) and call('HGET', task, id)
    if mode == 'sm' and oldRecord and (next ~= '-' or not hasFlag(flags, 'c')) and
        same(hasFlag(flags, 'n') and call('HGET', follows, id) or oldRecord, record) then
      return kept
    end
    if over and not oldRecord then return absent end
    pauseIfAsked()
    if oldRecord and not hasFlag(flags, 'c') and repeats(id, oldRecord) and repeats(id, record) then
      local out = changeRepeating(id, score, record, own, over, oldRecord, oldQueue, pendingAt, old, r, token, attempt, crashes, due_, flags, next)
      if out then return out end
    elseif running then
      if tonumber(next) == farthest and repeats(id, record) then
        score = farthest
      elseif over then
        score = never
      end
      call('HSET', follows, id, record)
      call('HSET', run, id, formatRun(token, attempt, crashes, due_, withFlag(flags, true), int(score), old))
      return following
    elseif over then
      forget(id)
      removePending(id, oldQueue)
      return removed
    end
  elseif over then
    return absent
  end
  pauseIfAsked()
  local queue = hasFlag(flags, 'p') and '~' .. new or new
  addPending(id, queue, at)
  call('HSET', task, id, record)
  if hasFlag(flags, 'p') then
    call('HSET', run, id, formatRun('0', 0, 0, int(score), 'p', '-', new))
  elseif r then
    call('HDEL', run, id)
  end
  if r then
    call('HDEL', err, id)
    if hasFlag(flags, 'n') then call('HDEL', follows, id) end
  end
  if pendingAt and queue ~= oldQueue then
    removePending(id, oldQueue, queue)
  elseif r and not pendingAt then
    call('ZREM', dead, id)
  end
  return (pendingAt or r) and replaced or created
end

-- renewed returns the record with a new generation and due time. It returns nil if
-- generation is empty or the record is too short.
local function renewed(record, generation, score)
  local kind = kindOf(record)
  local from = 20 + #kind
  if generation == '' or kind == '' or #content(record) < from + #generation then return nil end
  return string.format('%016.0f', score) .. sub(record, 17, from) .. generation .. sub(record, from + #generation + 1)
end

local function reschedule(id, score, generation)
  local pendingAt, kind, r, token, attempt, crashes, at, flags, next = find(id)
  -- followLater makes the task due at score after its present run.
  local function followLater()
    if generation == '' then return end
    local record = renewed(hasFlag(flags, 'n') and call('HGET', follows, id) or call('HGET', task, id), generation, score)
    if record then
      call('HSET', follows, id, record)
      flags = withFlag(flags, true)
    end
  end
  if pendingAt then
    local record = call('HGET', task, id)
    local repeating, began = repeats(id, record), r and at or int(pendingAt)
    local oldQueue, out = queueOf(kind, flags), hasFlag(flags, 'p') and once or moved
    local paused = pendingAt == farthest and repeating and out == moved
    local function runOnce()
      if out == once and not hasFlag(flags, 'o') then flags = flags .. 'o' end
    end
    if repeating and not paused and score ~= farthest and runStays(began, attempt, crashes) then
      if score > math.max(now, pendingAt) then
        flags = withFlag(string.gsub(flags, 'f%d+', ''), hasFlag(flags, 'n'))
        followLater()
        flags = (flags == '-' and '' or flags) .. 'f' .. int(score)
        call('HSET', run, id, formatRun('0', attempt, crashes, began, flags, int(pendingAt), kind))
        return following
      end
      score = math.min(pendingAt, score)
      runOnce()
      call('HSET', run, id, formatRun('0', attempt, crashes, began, flags, int(score), kind))
    elseif r and (attempt > 0 or crashes > 0) and not paused then
      runOnce()
      call('HSET', run, id, formatRun('0', attempt, crashes, at, flags, int(score), kind))
    else
      -- A task without attempts gets a new due time and generation.
      record = generation ~= '' and renewed(record, generation, score)
      if record then call('HSET', task, id, record) end
      if paused then
        call('HDEL', err, id)
        if hasFlag(flags, 'n') then call('HDEL', follows, id) end
        flags = '-'
      end
      runOnce()
      call('HSET', run, id, formatRun('0', 0, 0, int(score), flags, '-', kind))
    end
    addPending(id, queueOf(kind, flags), int(score))
    if queueOf(kind, flags) ~= oldQueue then removePending(id, oldQueue, queueOf(kind, flags)) end
    return out
  end
  if token == '0' then return absent end
  followLater()
  call('HSET', run, id, formatRun(token, attempt, crashes, at, flags, int(score), kind))
  return following
end

local cancelled = 0
local function cancel(id)
  local pendingAt, kind, _, token, attempt, crashes, at, flags = find(id)
  if pendingAt then
    forget(id)
    removePending(id, queueOf(kind, flags))
    if hasFlag(flags, 'n') then call('HDEL', follows, id) end
    cancelled = cancelled + 1
    return removed
  end
  if token == '0' then return absent end
  call('HSET', run, id, formatRun(token, attempt, crashes, at, (hasFlag(flags, 's') and 'sc' or 'c') .. workerOf(flags), '-', kind))
  if hasFlag(flags, 'n') then call('HDEL', follows, id) end
  if not hasFlag(flags, 'c') then cancelled = cancelled + 1 end
  return stopping
end

-- pauseTask pauses a task, or ends its pause.
local function pauseTask(id, on)
  local pendingAt, kind, r, token, attempt, crashes, at, flags, next = find(id)
  if not pendingAt and (token == '0' or hasFlag(flags, 'c') and next == '-') then return absent end
  local isPaused, oldQueue = hasFlag(flags, 'p'), queueOf(kind, flags)
  if on and isPaused and not hasFlag(flags, 'o') or not on and not isPaused then return kept end
  flags = string.gsub(flags, '[-po]', '') .. (on and 'p' or '')
  if flags == '' then flags = '-' end
  if not pendingAt then
    call('HSET', run, id, formatRun(token, attempt, crashes, at, flags, next, kind))
    return following
  end
  if not r then at = int(pendingAt) end
  addPending(id, queueOf(kind, flags), int(pendingAt))
  call('HSET', run, id, formatRun('0', attempt, crashes, at, flags, int(pendingAt) == at and '-' or int(pendingAt), kind))
  if queueOf(kind, flags) ~= oldQueue then removePending(id, oldQueue) end
  return moved
end

-- requeue makes a dead letter a pending task. The dead letter of a repeating task gets a
-- new id: the task's next failed run needs the old one.
local function requeue(id, score, generation)
  if not call('ZSCORE', dead, id) then return absent end
  local record = call('HGET', task, id) or ''
  local kind = kindOf(record)
  if byte(id, -1, -1) == 0 then
    local _, _, _, at = parseRun(call('HGET', run, id))
    local newID, suffix = id .. at, tonumber(now)
    while call('HEXISTS', task, newID) == 1 do
      newID, suffix = id .. int(suffix), suffix + 1
    end
    if kind ~= '' then -- without its schedule
      local from, size = 20 + #kind, match(kind, '^%d+')
      kind = groupOf(kind) or sub(kind, 1, #size + 1 + size)
      record = sub(record, 1, 17) .. string.char(math.floor(#kind / 256), #kind % 256) .. kind .. sub(record, from)
    end
    call('HSET', task, newID, renewed(record, generation, score) or record)
    touch(newID)
    makePending(newID, kind, int(score))
    forget(id)
  else
    record = renewed(record, generation, score)
    if record then call('HSET', task, id, record) end
    makePending(id, kind, int(score))
  end
  call('ZREM', dead, id)
  return moved
end

-- purge removes a dead letter, or a finished run and perhaps its head: see kept.lua.
local function purge(id)
  if call('ZSCORE', dead, id) then
    forget(id)
    call('ZREM', dead, id)
    return removed
  end
  local nul = string.find(id, '\0r', 1, true)
  if not nul or tonumber(call('ZSCORE', past, id) or '0') <= now then return absent end
  local head = sub(id, 1, nul) .. 'h'
  local r = call('HGET', run, head)
  local _, _, _, blocked, _, runs = parseRun(r)
  local alone = r and tonumber(runs) == 1 and tonumber(blocked) <= now
  for _, x in ipairs({id, alone and head or nil}) do
    forget(x)
    call('ZREM', past, x)
    call('ZREM', ended, x)
  end
  return removed
end

-- import adds an entry from another store.
local function import(id, into, at, record, attempts, crashes, due_, runs, failures, later, paused)
  if call('HEXISTS', task, id) == 1 or call('HEXISTS', run, id) == 1 then return kept end
  at = int(when(at))
  if due_ == '' then due_ = at end
  record = string.format('%016.0f', tonumber(due_)) .. record
  if into == 'past' then record = sub(record, 1, 16) .. '4' .. sub(record, 18) else record = record .. newVersion() end
  call('HSET', task, id, record)
  if failures ~= '' then call('HSET', err, id, failures) end
  local kind, next = kindOf(record), at ~= due_ and at or '-'
  local place = into == 'dead' and dead or into == 'past' and past
  if place then next = runs ~= '0' and runs or '-' end
  local flags = (not place and tonumber(crashes) > 2 and 's' or '') .. (not place and paused or '') .. (later ~= '' and 'f' .. later or '')
  call('HSET', run, id, formatRun('0', attempts, crashes, due_, flags == '' and '-' or flags, next, kind))
  if place then call('ZADD', place, at, id) else addPending(id, queueOf(kind, flags), at) end
  local ending = place == past and endOf(id, record)
  if ending then call('ZADD', ended, ending, id) end
  return created
end

-- limit sets a handler's limit.
local function limit(handler, most, every, burst, rate, groupMost, groupEvery, groupBurst, groupRate)
--include count.lua
  handler = #handler .. ':' .. handler
  local ofGroup = groupMost ~= '0' or groupEvery ~= '0'
  local old, none = call('HGET', limits, handler), most == '0' and every == '0' and not ofGroup
  local running = countRunning()
  if none and not old then return absent end
  if not old and call('HLEN', limits) >= 1000 then return kept end
  if none then
    call('HDEL', limits, handler)
    if call('HLEN', limits) == 0 then call('HDEL', meta, 'limits') end
  else
    local full = match(old or '', '^%d+ %d+ %d+ %d+ (%d+)') or '0'
    local words = {most, every, burst, running[handler] or 0, full, 0, rate}
    if ofGroup then words[8] = table.concat({groupMost, groupEvery, groupBurst, groupRate}, ' ') end
    call('HSET', limits, handler, table.concat(words, ' '))
    call('HSET', meta, 'limits', 1)
  end
--include aside.lua
  local function isOurs(name) return sub(name, 1, #handler) == handler end
  -- The states of the handler's groups.
  local states, all = {}, call('HGETALL', groups .. 'state')
  for i = 1, #all, 2 do
    if isOurs(all[i]) then states[all[i]] = match(all[i + 1], '^%d+ (%d+)$') or '0' end
  end
  for name in pairs(running) do
    if isOurs(name) and name ~= handler then states[name] = states[name] or '0' end
  end
  for group, full in pairs(states) do
    local n = running[group] or 0
    if groupEvery == '0' then full = '0' end
    if not ofGroup or n == 0 and tonumber(full) <= now then
      call('HDEL', groups .. 'state', group)
    else
      call('HSET', groups .. 'state', group, n .. ' ' .. full)
    end
  end
  for _, kind in ipairs(call('ZRANGE', groups .. 'blocked', 0, -1)) do
    if isOurs(byte(kind, 1) == 33 and sub(kind, 2) or kind) then
      unblock(groupOf(kind))
      call('ZREM', groups .. 'blocked', kind)
    end
  end
  bringBack(aside .. ':=' .. handler)
  -- A kind that waits for the old rate is due at once.
  for _, place in ipairs({kinds, groups .. 'kinds'}) do
    for _, kind in ipairs(call('ZRANGE', place, 0, -1)) do
      local head = isOurs(byte(kind, 1) == 33 and sub(kind, 2) or kind) and call('ZRANGE', due .. kind, 0, 0, 'WITHSCORES')[2]
      if head then call('ZADD', place, int(head), kind) end
    end
  end
  wakeAllWorkers()
  return none and removed or old and replaced or created
end

-- syncTask schedules a task of a set.
local function syncTask(id, record)
  local sign
  sign, record = timed(record)
  local score, own = tonumber(sub(record, 1, 16)), sign == 61 or sign == 35
  local out = schedule(id, sub(record, 1, 16), record .. newVersion(), 'sm', own)
  if out == following then touch(id) end
  if sign ~= 35 or out ~= kept then return out end
  local pendingAt, kind, r, _, attempt, crashes, at, flags = find(id)
  if not pendingAt or pendingAt == score or pendingAt == farthest or runStays(r and at or pendingAt, attempt, crashes) then
    return kept
  end
  -- The rules of its zone have changed.
  call('HSET', task, id, string.format('%016.0f', score) .. sub(call('HGET', task, id), 17))
  if r then call('HSET', run, id, formatRun('0', attempt, crashes, int(score), flags, '-', kind)) end
  addPending(id, queueOf(kind, flags), score)
  touch(id)
  return moved
end

-- sync makes the tasks of a set those in ARGV from p on. The field t:SET of meta has the set's
-- version and, as JSON, the keys of its tasks. It returns the outcomes from outcomes[k] on.
local function sync(p, count, k)
  local set, version, keys, isNew = ARGV[p], ARGV[p + 1], {}, {}
  local old = call('HGET', meta, 't:' .. set)
  local oldVersion, oldKeys = match(old or '', '^(%d+) (.*)$')
  if oldVersion and version < oldVersion then
    for j = 1, count do outcomes[k + j] = kept end
    return
  end
  outcomes[k + 1] = old and replaced or created
  for j = 2, count do
    local id = ARGV[p + 2 * j - 2]
    outcomes[k + j] = syncTask(id, ARGV[p + 2 * j - 1])
    keys[j - 1], isNew[id] = id, true
  end
  local known, list = pcall(cjson.decode, oldKeys or '[]')
  for _, id in ipairs(known and type(list) == 'table' and list or {}) do
    if not isNew[id] and repeats(id, call('HGET', task, id)) and cancel(id) == stopping then touch(id) end
  end
  call('HSET', meta, 't:' .. set, version .. ' ' .. (#keys > 0 and cjson.encode(keys) or '[]'))
end

-- pauseHandler pauses a handler. Claims then set its kinds aside.
local function pauseHandler(handler, note)
  handler = #handler .. ':' .. handler
  local old = call('HGET', stopped, handler)
  if not old and call('HLEN', stopped) >= 1000 then return kept end
  call('HSET', stopped, handler, (match(old or '', '^%d+') or int(now)) .. ' ' .. note)
  call('HSET', meta, 'stopped', 1)
  wakeAllWorkers()
  return old and replaced or created
end

-- resumeHandler ends the pause of a handler.
local function resumeHandler(handler)
--include aside.lua
  handler = #handler .. ':' .. handler
  if call('HDEL', stopped, handler) == 0 then return absent end
  if call('HLEN', stopped) == 0 then call('HDEL', meta, 'stopped') end
  bringBack(aside .. ':=' .. handler)
  wakeAllWorkers()
  return removed
end

local function pause(on)
  if on then
    call('HSET', meta, 'paused', 1)
  else
    call('HDEL', meta, 'paused', 'armed', 'owner')
    wakeWorkers()
  end
end

local blocks -- reports whether the task's key is still unique after a finished run
if uniques then
--include kept.lua
  function blocks(id, record)
    local unique = keeps(record)
    if not unique or unique == 0 then return false end
    local _, blocked = headOf(id)
    return blocked > now
  end
end

for _, x in ipairs(known) do
  local mode, version = match(x[4], '^%l+'), match(x[6] or '', '%d+')
  if version and (call('HEXISTS', task, x[2]) == 0 or isOther(x[2], version)) then
    outcomes[x[1]] = changed
  elseif mode ~= x[4] and blocks(x[2], x[3]) then
    outcomes[x[1]] = kept
  else
    outcomes[x[1]] = schedule(x[2], sub(x[3], 1, 16), x[3], mode, x[5], x[6])
    if outcomes[x[1]] == following then touch(x[2]) end
  end
end

for i = 1, n do
  local letter = offsets[i] and sub(ops[i], 1, 1)
  if letter and letter ~= 's' then
    if letter ~= 'i' and letter ~= 'y' then allowWrites() end
    if letter == 'p' or letter == 'g' then pause(letter == 'p') end
    if letter == 'y' then sync(starts[i], counts[i], offsets[i]) end
    for j = 1, letter == 'y' and 0 or counts[i] do
      local p = starts[i] + widths[i] * (j - 1)
      local id, out = ARGV[p], nil
      local isTask = string.find('rcPRqx', letter, 1, true)
      if isTask and isOther(id, ARGV[p + 1]) then
        out = changed
      elseif letter == 'r' then
        out = reschedule(id, when(ARGV[p + 2]), ARGV[p + 3])
      elseif letter == 'c' then
        out = cancel(id)
      elseif letter == 'P' or letter == 'R' then
        out = pauseTask(id, letter == 'P')
      elseif letter == 'q' then
        out = requeue(id, when(ARGV[p + 2]), ARGV[p + 3])
      elseif letter == 'x' then
        out = purge(id)
      elseif letter == 'l' then
        out = limit(unpack(ARGV, p, p + 8))
      elseif letter == 'h' then
        out = pauseHandler(id, ARGV[p + 1])
      elseif letter == 'u' then
        out = resumeHandler(id)
      else
        out = import(unpack(ARGV, p, p + 10))
      end
      if isTask and (out == following or out == moved or out == stopping or out == once) then touch(id) end
      outcomes[offsets[i] + j] = out
    end
  end
end
addToCounter('cancelled', cancelled)
if not sendersKnown then deleteOldSenders() end
end

local fields, written, seen = {}, 0, ' ' .. int(now) .. ' o'
for i = 1, n do
  local size = counts[i]
  if offsets[i] then
    local digits = size == 1 and outcomes[offsets[i] + 1] or table.concat(outcomes, '', offsets[i] + 1, offsets[i] + size)
    answers[i] = 'o' .. digits
    written = written + 2
    fields[written - 1], fields[written] = ARGV[2 + i], numbers[i] .. seen .. digits
  end
end
if soonest and (not armed or soonest < armed) then
  call('ZADD', wake, 0, 'w', 1, 'x') -- as wakeWorkers in lib.lua
  armed = soonest
end
-- If no worker has a timer for the shard, the worker that is woken now claims, and sets its
-- timer for the time armed or earlier. Only an earlier task needs a wake-up.
if armed and not saved.armed then fields[#fields + 1], fields[#fields + 2] = 'armed', int(armed) end
if latest > hadLatest then fields[#fields + 1], fields[#fields + 2] = 'fence', int(latest) end
if #fields > 0 then call('HSET', meta, unpack(fields)) end
for i = 2, n do
  if answers[i] ~= answers[1] then return answers end
end
return answers[1]
