-- Functions for all but the fastest paths of the scripts: defining a function costs as
-- much as a Redis command.
--include kind.lua
--include group.lua

-- wakeWorkers makes workers check the shard. The worker that pops w checks it at once. The
-- worker that pops x checks it a little later, in case the first worker is frozen.
local function wakeWorkers() call('ZADD', wake, 0, 'w', 1, 'x') end

-- wakeAllWorkers makes all workers check the shard, because a setting has changed.
local function wakeAllWorkers()
  call('HDEL', meta, 'armed', 'owner')
  for i = 3, math.min(call('HLEN', crew), 32) do call('ZADD', wake, i, 'y' .. i) end
  wakeWorkers()
end

-- allowWrites lets the script continue on a full server. Such a server refuses commands
-- that may need memory, until the script has written with a command that needs none.
local function allowWrites() call('HDEL', run, '') end

-- deleteOldSenders deletes some senders that have been silent for a day. The first command of each
-- new sender calls it.
local function deleteOldSenders()
  if call('HLEN', meta) < 100 then return end
  local page = call('HSCAN', meta, call('HGET', meta, 'sweep') or '0', 'COUNT', 50)
  local old = {}
  for i = 1, #page[2], 2 do
    if sub(page[2][i], 1, 2) == 's:' then
      local seen = match(page[2][i + 1], '^%d+ (%d+) ')
      -- change.lua rounds seen down to a second.
      if (tonumber(seen or '') or 0) < now - 86401 * 1000000 then old[#old + 1] = page[2][i] end
    end
  end
  if #old > 0 then
    call('HDEL', meta, unpack(old))
    call('HDEL', crew, unpack(old))
    for i = 1, #old do old[i] = 'w:' .. old[i] end
    call('HDEL', meta, unpack(old))
  end
  call('HSET', meta, 'sweep', page[1])
end

-- when returns a time in microseconds. s is a time, or a plus sign and a delay from now.
-- After a delay, the time is at most store.Farthest.
local function when(s)
  if byte(s, 1, 1) == 43 then return math.min(now + tonumber(sub(s, 2)), 7258118399999999) end -- a plus sign
  return tonumber(s)
end

-- wakeIfEarlier wakes workers if a task is due before armed, the time of the owner's timer.
-- If this script also claims tasks, its worker sets its own timer: no wake-up is needed.
local function wakeIfEarlier(score)
  if not claims and (not armed or score < armed) then
    wakeWorkers()
    armed = score
  end
end

-- parseRun returns the words of a run. For a missing or damaged run it returns the words
-- of a run without a lease.
local function parseRun(r)
  local token, attempt, crashes, at, flags, next, kind =
    match(r or '', '^(%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (.*)$')
  if not token or next ~= '-' and not match(next, '^%d+$') then return '0', 0, 0, int(now), '-', '-', '' end
  return token, tonumber(attempt), tonumber(crashes), at, flags, next, kind
end

local function formatRun(token, attempt, crashes, at, flags, next, kind)
  return table.concat({token, attempt, crashes, at, flags, next, kind}, ' ')
end

-- workerOf returns the flag of a running task that names its worker, or an empty string.
local function workerOf(flags) return match(flags, 'w%d+') or '' end

-- flagsOf returns flags of a run: these letters, and s and p if the run with the flags old is a
-- suspect or paused.
local function flagsOf(letters, old)
  if string.find(old, 'p', 1, true) then letters = 'p' .. letters end
  if string.find(old, 's', 1, true) then letters = 's' .. letters end
  return letters == '' and '-' or letters
end

-- queueOf returns the kind under which a pending task is in due and kinds.
local function queueOf(kind, flags)
  if string.find(flags, 'p', 1, true) and not string.find(flags, 'o', 1, true) then return '~' .. kind end
  return string.find(flags, 's', 1, true) and '!' .. kind or kind
end

local function hasFlag(flags, flag) return string.find(flags, flag, 1, true) end

-- repeats reports whether a task repeats, like Task.Repeats of package store.
local function repeats(id, record)
  local kind = kindOf(record)
  if kind == '' or string.find(id, '\0', 1, true) then return false end
  record = content(record)
  local size = match(kind, '^%d+')
  local schedule = byte(kind, #size + 2 + size)
  if schedule and schedule > 0 then return true end
  local fields = byte(record, 27 + #kind, 27 + #kind)
  return fields and hasFields(record, kind) and math.floor(fields / 8) % 2 == 1
end

-- dueTime returns when a task without a lease is due. The time is in its run r, or in its
-- record if it has no run.
local function dueTime(r, record)
  local _, _, _, at, _, next = parseRun(r)
  if r then return next ~= '-' and next or at end
  return match(record or '', '^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d') or int(now)
end

-- addToCounter adds n to a counter, unless it is damaged: then only Repair changes it.
local function addToCounter(what, n)
  if n > 0 then redis.pcall('HINCRBY', meta, what, n) end
end

-- forget deletes all data of a task except its ZSET entry.
local function forget(id)
  call('HDEL', task, id)
  call('HDEL', run, id)
  call('HDEL', err, id)
end

-- withFailure returns the last ten failures of a task: old, and a new one. If handBack is
-- true, the new one stands for all attempts that were handed back, and counts them.
local function withFailure(old, attempt, text, handBack)
  local starts, at, backs = {}, 1, 1
  while at <= #old do
    local _, to, size, n = string.find(old, '^%d+ %d+ (%d+) ?(%d*):', at)
    if not to then -- damaged
      old, starts = '', {}
      break
    end
    if handBack and n ~= '' then
      old, backs = sub(old, 1, at - 1) .. sub(old, to + 1 + size), backs + n
    else
      starts[#starts + 1] = at
      at = to + 1 + size
    end
  end
  if #starts > 9 then old = sub(old, starts[#starts - 8]) end
  return old .. attempt .. ' ' .. int(now) .. ' ' .. #text .. (handBack and ' ' .. int(backs) or '') .. ':' .. text
end

local function addFailure(id, attempt, text, more)
  call('HSET', err, id, withFailure(more or call('HGET', err, id) or '', attempt, text))
end

-- bury makes a task a dead letter.
local function bury(id, attempt, crashes, at, text, kind)
  addFailure(id, attempt, text)
  call('HSET', run, id, formatRun('0', attempt, crashes, at, '-', '-', kind))
  call('ZADD', dead, int(now), id)
end

-- addPending adds a task to the ZSET of its kind.
local function addPending(id, kind, score)
  if byte(kind, 1) == 126 then -- a tilde: it is paused
    call('ZADD', aside, score, kind)
    call('ZADD', due .. kind, score, id)
    return
  end
  if groupOf(kind) then
    local ready, all = addGroupKind(kind, score)
    call('ZADD', all, score, id)
    call('ZADD', due .. kind, score, id)
    if ready then wakeIfEarlier(tonumber(score)) end
    return
  end
  call('ZADD', kinds, 'LT', score, kind)
  call('ZADD', due .. kind, score, id)
  wakeIfEarlier(tonumber(score))
end

-- removePending removes a task from the ZSET of its kind, and not from those of its new kind
-- if it has got another. A kind without tasks is removed.
local function removePending(id, kind, new)
  local group, handler, schedule = groupOf(kind)
  call('ZREM', due .. kind, id)
  if group then
    local _, newHandler, newSchedule = groupOf(new or '')
    if handler ~= newHandler or schedule ~= newSchedule then
      local all = '@' .. handler .. schedule
      call('ZREM', due .. all, id)
      if call('ZCARD', due .. all) == 0 then call('ZREM', groups .. 'all', all) end
    end
  end
  if call('ZCARD', due .. kind) > 0 then return end
  if group then
    for _, key in ipairs({groups .. 'kinds', groups .. 'aside', groups .. 'blocked', aside .. ':=' .. group}) do call('ZREM', key, kind) end
  else
    call('ZREM', kinds, kind)
    call('ZREM', aside, kind)
  end
end

-- makePending makes a task pending at the time score, without attempts. It stays paused if its
-- old flags say so.
local function makePending(id, kind, score, old)
  local flags = hasFlag(old or '-', 'p') and 'p' or '-'
  call('HSET', run, id, formatRun('0', 0, 0, score, flags, '-', kind))
  call('HDEL', err, id)
  addPending(id, queueOf(kind, flags), score)
end

-- follow makes a running task pending at the time next, if it was scheduled again or
-- rescheduled meanwhile. If next is later than farthest, no run follows.
local function follow(id, kind, flags, next)
  local record = hasFlag(flags, 'n') and call('HGET', follows, id)
  if tonumber(next) > farthest then
    forget(id)
    if record then call('HDEL', follows, id) end
    return
  end
  if record then
    kind = kindOf(record)
    call('HSET', task, id, record)
  end
  makePending(id, kind, next, flags)
  if record then call('HDEL', follows, id) end
end
