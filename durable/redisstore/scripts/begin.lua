-- What every script begins with. KEYS are those of one shard. ARGV begins with
--
--   SCHEMA     the store's version and number of shards, and when the shard was made, as
--              the store in the process knows them
--   N FIELD... fields of meta that the script reads
--
-- Times are microseconds since 1970, by the clock of this server. They stay exact in Lua's
-- doubles until the year 2255, but tostring would not write them out: whatever becomes a
-- string goes through int.
--
-- # What is stored
--
-- A kind is what a worker must know to run a task: the length of the handler's name, a
-- colon, that name and the schedule's name. What is damaged has the empty kind.
--
-- A record, an entry of task, is
--
--   due       16 digits: when the task was scheduled for
--   version   the byte 4
--   kind      2 bytes of length, and the kind
--   bytes     the caller's
--
-- A run, an entry of run, is seven words:
--
--   token attempt crashes due flags next kind
--
--   token    the fencing token of the lease, or 0 if nobody has one
--   attempt  how many attempts have begun
--   crashes  how many of them ended with their lease
--   due      when the run was to begin
--   flags    c if a cancel was asked for while it ran; n if it was scheduled again
--            while it ran, or rescheduled with another generation, with the new record in
--            follows; - if neither
--   next     of a lease: when the task, scheduled again or rescheduled while it ran,
--            is due, or -. Of a pending task: when the next attempt is due, or - if
--            it is when the run was to begin. Of the dead letter of a repeating task:
--            how many of its runs have died; of the head of what is kept of a key's runs:
--            how many have been kept, and its due is until when the key is not scheduled
--   kind     the record's
--
-- A task that waits is in the ZSET of its kind, whose key is due and the kind, with the
-- time when it is due. The run, if there is one, or else the record holds the same time, so
-- that Repair knows it. The ZSET kinds has each kind with the time of its first task, or
-- an earlier one.
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
-- What is kept of runs that have ended is in past, under ids of its own.
--
-- A task is in exactly one of these ZSETs, and has a record. It has a run from its first
-- claim on, which a pending task keeps between attempts and between runs, and a dead
-- letter for ever.
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
local due, kinds, lease, dead, task, follows, run, err, wake, meta, crew, past = unpack(KEYS)
local call, byte, sub, match = redis.call, string.byte, string.sub, string.match
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function int(n) return string.format('%.0f', tonumber(n)) end

-- What the client knows of the shard is what is there, nearly always.
local m = call('HMGET', meta, 'schema', 'armed', unpack(ARGV, 3, 2 + ARGV[2]))
if m[1] ~= ARGV[1] then
  local version, born = match(ARGV[1], '^([^@]*)@?(.*)$')
  if m[1] and match(m[1], '^[^@]*') ~= version then
    return redis.error_reply('TICKLESS schema ' .. m[1])
  end
  if not m[1] and born ~= '' then
    return redis.error_reply('TICKLESS lost')
  end
  -- A shard is made by whoever comes first.
  if not m[1] then
    m[1] = version .. '@' .. int(now)
    -- With a value of more than 64 bytes it is a hash table: a list, as small hashes
    -- are, would be searched from its beginning for each sender.
    call('HSET', meta, 'schema', m[1], 'table', string.rep('-', 65))
  end
  return redis.error_reply('TICKLESS is ' .. m[1] .. ' ' .. int(now))
end
local armed = tonumber(m[2] or '')
local first = 3 + ARGV[2] -- of the script's own arguments
local claims = false -- whether a claim follows
