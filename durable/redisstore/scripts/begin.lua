-- What every script begins with. KEYS are those of one shard. The first of ARGV is the
-- schema: the store's version and number of shards, and when the shard was made, as the
-- store in the process knows them.
--
-- Times are microseconds since 1970, by the clock of this server, and stay exact in
-- Lua's doubles until the year 2255, but tostring would not write them out: whatever
-- becomes a string goes through int.
--
-- # What is stored
--
-- A record, an entry of task, is
--
--   due       16 digits: when the task was scheduled for
--   version   the byte 3
--   kind      the lengths of the handler's and of the schedule's name, 2 bytes each,
--             and the names
--   bytes     the caller's
--
-- A run, which is an entry of the HASH of that name, is six words:
--
--   token attempt crashes due flags next
--
--   token    the fencing token of the lease, or 0 if nobody has one
--   attempt  how many attempts have begun
--   crashes  how many of them ended with their lease
--   due      when the run was to begin
--   flags    c if a cancel was asked for while it ran; n if it was scheduled again
--            while it ran, or rescheduled with another generation, with the new record
--            beside the old one, under the id and "\0new"; - if neither
--   next     of a lease: when the task, scheduled again or rescheduled while it ran,
--            is due, or -. Of a pending task: when the next attempt is due, or - if
--            it is when the run was to begin. Of the dead letter of a repeating task:
--            how many of its runs have died
--
-- A task that waits is due at the time in due or in aside. The run, if there is one, or
-- else the record holds the same time, so that Repair knows it.
--
-- Of each sender meta has, under its name, the latest command: its number, when it came,
-- and the answer.
--
-- # A task's life
--
--            schedule                 claim
--   (none) ───────────▶ due ──────────────────────────▶ lease ──▶ (none)  done, or cancelled
--                       ▲ ▲ │ cancel                     │  │
--                       │ │ └───▶ (none)                 │  │ no attempt left
--                       │ └──────────────────────────────┘  ▼
--                       │   retry, hand back, next run,    dead ──▶ (none)  purge
--                       │   lease ran out, following        │
--                       └───────────────────────────────────┘ requeue, schedule
--
-- What is due and of a kind that a worker does not know it puts aside, where it is out
-- of the way, and one that knows the kind brings it back: see round.lua. Such a task is
-- in aside, with its time, and in kinds, by its kind and its time.
--
-- A task is in exactly one of the ZSETs due, aside, lease and dead, and has a record in
-- task. It has a run from its first claim on, which a pending task keeps between
-- attempts and between runs, and a dead letter for ever.
--
-- # A crash in the middle
--
-- A server that dies while it writes its AOF can leave the first commands of a
-- script there, which are carried out by themselves two starts later. So a script
-- puts a task into its new place before it takes it out of the old one, and
-- removes a record before all else: a task that is in two places, or in none, can
-- be told from one that is done. Nothing is deleted by rank, by a range or by
-- count, which would hit other tasks by then. That the command was carried out is
-- written last.
local due, aside, kinds, lease, dead, task, run, err, wake, meta, crew = unpack(KEYS)
local call = redis.call

-- What the client knows of the shard is what is there, nearly always.
local m = call('HMGET', meta, 'schema', 'armed' --[[also]])
if m[1] ~= ARGV[1] then
  local version, born = string.match(ARGV[1], '^([^@]*)@?(.*)$')
  if m[1] and string.match(m[1], '^[^@]*') ~= version then
    return redis.error_reply('TICKLESS schema ' .. m[1])
  end
  if not m[1] and born ~= '' then
    return redis.error_reply('TICKLESS lost')
  end
  -- A shard is made by whoever comes first.
  local clock = call('TIME')
  local now = string.format('%.0f', clock[1] * 1000000 + clock[2])
  if not m[1] then
    m[1] = version .. '@' .. now
    -- With a value of more than 64 bytes it is a hash table: a list, as small hashes
    -- are, would be searched from its beginning for each sender.
    call('HSET', meta, 'schema', m[1], 'table', string.rep('-', 65))
  end
  return redis.error_reply('TICKLESS is ' .. m[1] .. ' ' .. now)
end
local armed = tonumber(m[2] or '')

-- claims is whether a claim follows: then its worker watches for what it does not get.
local claims = false

-- rouse has a worker look at the shard: the one that pops w at once, and the one
-- that pops x a little later, in case the first is frozen and has only taken w.
local function rouse() call('ZADD', wake, 0, 'w', 1, 'x') end
