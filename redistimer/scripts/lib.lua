-- What every script begins with. KEYS are those of one shard; ARGV[1] is the
-- schema. Times are microseconds since 1970, by the clock of this server, and
-- stay exact in Lua's doubles until the year 2255, but tostring would not write
-- them out: whatever becomes a string goes through int.
--
-- A run, which is an entry of the HASH of that name, is six words:
--
--   token attempt crashes due flags next
--
--   token    the fencing token of the lease, or 0 if nobody has one
--   attempt  how many attempts have begun
--   crashes  how many of them ended with their lease
--   due      when the run was to begin
--   flags    c if a cancel was asked for while it ran, - if not
--   next     when the task, scheduled anew while it ran, is due, or -
--
-- # A task's life
--
--            schedule                 claim
--   (none) ───────────▶ due ──────────────────────────▶ lease ──▶ (none)  done, or cancelled
--                       ▲ ▲ │ cancel                     │  │
--                       │ │ └───▶ (none)                 │  │ no attempt left
--                       │ └──────────────────────────────┘  ▼
--                       │   retry, release, next run,      dead ──▶ (none)  purge
--                       │   lease ran out, following        │
--                       └───────────────────────────────────┘ requeue, schedule
--
-- A task is in exactly one of the ZSETs due, lease and dead, and has a record in
-- task. It has a run from its first claim on, which a pending task keeps between
-- attempts, and a dead letter for ever. So a task exists if it is in due or has
-- a run.
local due, lease, task, run, dead, err, wake, meta =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local call = redis.call

local m = call('HMGET', meta, 'schema', 'armed')
if m[1] and m[1] ~= ARGV[1] then
  return redis.error_reply('TICKLESS schema ' .. m[1])
end
local armed = tonumber(m[2] or '')

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function int(n) return string.format('%.0f', n) end

-- The schema is stored by whoever writes first.
local function begin()
  if not m[1] then call('HSET', meta, 'schema', ARGV[1]) end
end

local function when(s)
  if string.sub(s, 1, 1) == '+' then return now + tonumber(string.sub(s, 2)) end
  return tonumber(s)
end

-- watch wakes a worker up if a task is due before the moment for which one has
-- set its timer: see claim.lua.
local function watch(score)
  if not armed or score < armed then
    call('ZADD', wake, 0, 'w')
    armed = score
  end
end

local function parse(r)
  local token, attempt, crashes, at, flags, next =
    string.match(r, '^(%d+) (%d+) (%d+) (%d+) (%S+) (%S+)$')
  return token, tonumber(attempt), tonumber(crashes), at, flags, next
end

local function state(token, attempt, crashes, at, flags, next)
  return table.concat({token, attempt, crashes, at, flags, next}, ' ')
end

local function count(what, n)
  if n > 0 then call('HINCRBY', meta, what, n) end
end

-- forget removes all there is about a task but its place in a ZSET.
local function forget(id)
  call('HDEL', task, id)
  call('HDEL', run, id)
  call('HDEL', err, id)
end

-- note adds an attempt to a task's failures, of which it keeps the last ten.
local function note(id, attempt, text)
  local old = call('HGET', err, id) or ''
  local starts, at = {}, 1
  while at <= #old do
    local from, to, len = string.find(old, '^%d+ %d+ (%d+):', at)
    if not from then
      old, starts = '', {}
      break
    end
    starts[#starts + 1] = at
    at = to + 1 + tonumber(len)
  end
  if #starts >= 10 then old = string.sub(old, starts[#starts - 8]) end
  call('HSET', err, id, old .. attempt .. ' ' .. int(now) .. ' ' .. #text .. ':' .. text)
end

-- bury makes a dead letter of a task that is in no place.
local function bury(id, attempt, crashes, at, text)
  note(id, attempt, text)
  call('HSET', run, id, state('0', attempt, crashes, at, '-', '-'))
  call('ZADD', dead, int(now), id)
end

-- follow puts a task that was scheduled anew while it ran into its new place.
local function follow(id, next)
  call('HDEL', run, id)
  call('HDEL', err, id)
  call('ZADD', due, next, id)
  watch(tonumber(next))
end
