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
--   next     when the task, scheduled anew while it ran, is due, or -; of the dead
--            letter of a repeating task how many of its runs have died
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

-- rouse has a worker look at the shard: the one that pops w at once, and the one
-- that pops x a little later, in case the first is frozen and has only taken w.
local function rouse() call('ZADD', wake, 0, 'w', 1, 'x') end
