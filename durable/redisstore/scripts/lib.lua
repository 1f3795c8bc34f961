-- Functions for all but the fastest paths of the scripts: defining a function costs as
-- much as a Redis command.
--include kind.lua

-- rouse makes workers check the shard. The worker that pops w checks it at once. The
-- worker that pops x checks it a little later, in case the first worker is frozen.
local function rouse() call('ZADD', wake, 0, 'w', 1, 'x') end

-- permit lets the script continue on a full server. Such a server refuses commands that
-- may need memory, until the script has executed a command that needs none.
local function permit() call('HDEL', run, '') end

-- sweep deletes some senders that have been silent for a day. The first command of each
-- new sender calls it.
local function sweep()
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
  end
  call('HSET', meta, 'sweep', page[1])
end

-- when returns a time in microseconds. s is a time, or a plus sign and a delay. The
-- maximum is store.Farthest.
local function when(s)
  if byte(s, 1, 1) == 43 then return math.min(now + tonumber(sub(s, 2)), 7258118399999999) end -- a plus sign
  return tonumber(s)
end

-- watch wakes a worker if a task is due before the owner's timer. If this script also
-- claims tasks, its worker will set its timer for the tasks that it does not get.
local function watch(score)
  if not claims and (not armed or score < armed) then
    rouse()
    armed = score
  end
end

-- parse returns the words of a run. For a missing or damaged run it returns those of a
-- run without a lease.
local function parse(r)
  local token, attempt, crashes, at, flags, next, kind =
    match(r or '', '^(%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (.*)$')
  if not token then return '0', 0, 0, int(now), '-', '-', '' end
  return token, tonumber(attempt), tonumber(crashes), at, flags, next, kind
end

local function state(token, attempt, crashes, at, flags, next, kind)
  return table.concat({token, attempt, crashes, at, flags, next, kind}, ' ')
end

local function has(flags, flag) return string.find(flags, flag, 1, true) end

-- A paused repeating task is due at the time farthest.
local farthest = 7258118399999999

-- repeats reports whether a task repeats, like Task.Repeats of package store.
local function repeats(id, record)
  local kind = kindOf(record)
  if kind == '' or string.find(id, '\0', 1, true) then return false end
  local size = match(kind, '^%d+')
  if #kind > #size + 1 + size then return true end
  local fields = byte(record, 27 + #kind, 27 + #kind)
  return fields and byte(record, 20 + #kind, 20 + #kind) == 1 and math.floor(fields / 8) % 2 == 1
end

-- place returns when a task without a lease is due, by its run r, or by its record if it
-- has no run.
local function place(r, record)
  local _, _, _, at, _, next = parse(r)
  if r then return next ~= '-' and next or at end
  return match(record or '', '^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d') or int(now)
end

local function count(what, n)
  if n > 0 then call('HINCRBY', meta, what, n) end
end

-- forget deletes all data of a task except its ZSET entry.
local function forget(id)
  call('HDEL', task, id)
  call('HDEL', run, id)
  call('HDEL', err, id)
end

-- noted returns a task's failures, old, with one more failure. It keeps the last ten.
local function noted(old, attempt, text)
  local starts, at = {}, 1
  while at <= #old do
    local _, to, size = string.find(old, '^%d+ %d+ (%d+):', at)
    if not to then -- damaged
      old, starts = '', {}
      break
    end
    starts[#starts + 1] = at
    at = to + 1 + size
  end
  if #starts > 9 then old = sub(old, starts[#starts - 8]) end
  return old .. attempt .. ' ' .. int(now) .. ' ' .. #text .. ':' .. text
end

local function note(id, attempt, text, more)
  call('HSET', err, id, noted(more or call('HGET', err, id) or '', attempt, text))
end

-- bury makes a task a dead letter.
local function bury(id, attempt, crashes, at, text, kind)
  note(id, attempt, text)
  call('HSET', run, id, state('0', attempt, crashes, at, '-', '-', kind))
  call('ZADD', dead, int(now), id)
end

-- enter adds a task to the ZSET of its kind.
local function enter(id, kind, score)
  call('ZADD', kinds, 'LT', score, kind)
  call('ZADD', due .. kind, score, id)
  watch(tonumber(score))
end

-- wait makes a task pending at the time score, without attempts.
local function wait(id, kind, score)
  call('HSET', run, id, state('0', 0, 0, score, '-', '-', kind))
  call('HDEL', err, id)
  enter(id, kind, score)
end

-- follow makes a running task pending at the time next, if it was scheduled again or
-- rescheduled meanwhile.
local function follow(id, kind, flags, next)
  local record = has(flags, 'n') and call('HGET', follows, id)
  if record then
    kind = kindOf(record)
    call('HSET', task, id, record)
  end
  wait(id, kind, next)
  if record then call('HDEL', follows, id) end
end
