-- The beginning of every script. KEYS are those of one shard. ARGV begins with
--
--   SCHEMA     the store's version and number of shards, and when the shard was created, as
--              the store in the process knows them
--   N FIELD... fields of meta that the script reads
--
-- Times are microseconds since 1970, by the clock of this server. Lua's doubles represent
-- them exactly until the year 2255, but tostring would use an exponent: always convert a
-- time to a string with int.
--
-- # What is stored
--
-- A kind is what a worker needs to run a task: the length of the handler's name, a colon,
-- that name, and the schedule's name. Damaged records have the empty kind.
--
-- A record, a value of task, is
--
--   due       16 digits: when the task was scheduled for
--   version   the byte 4
--   kind      2 bytes of length, and the kind
--   bytes     the caller's
--
-- A run, a value of run, is seven words:
--
--   token attempt crashes due flags next kind
--
--   token    the fencing token of the lease, or 0 without a lease
--   attempt  how many attempts have started
--   crashes  how many of them ended with an expired lease
--   due      when the run was first due
--   flags    c if the task was cancelled while it runs; n if it was scheduled again while
--            it runs, or rescheduled with another generation, with the new record in
--            follows; - for neither
--   next     of a running task that was scheduled again or rescheduled: when it is due
--            next, or -. Of a pending task: when the next attempt is due, or - if it is
--            due at the time due. Of the dead letter of a repeating task: how many runs
--            it stands for. Of the head of a key's finished runs: how many runs have been
--            kept, and due is the time until which the key cannot be scheduled.
--   kind     the record's kind
--
-- A pending task is in the ZSET of its kind, whose key is "due:" and the kind, with the
-- time when it is due. Its run, or without a run its record, has the same time, so that
-- Repair can restore it. The ZSET kinds has each kind with the time of its first task or an
-- earlier time.
--
-- Under each sender's name, meta has the sender's latest command: its number, when it came,
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
--                       │   lease expired, following        │
--                       └───────────────────────────────────┘ requeue, schedule
--
-- Finished runs that are kept are in past, with ids of their own.
--
-- A task is in exactly one of these ZSETs, and has a record. It has a run from its first
-- claim on. A pending task keeps its run between attempts and between runs, and a dead
-- letter keeps it as long as it exists.
--
-- # A crash during a script
--
-- A server that crashes while it writes its AOF can leave the first commands of a script
-- there, which then take effect alone at the second start. So a script adds a task to its
-- new ZSET before it removes it from the old one, and when it deletes a task it deletes the
-- record first. A task in two ZSETs or in none can then be distinguished from one that is
-- done. Scripts never delete by rank, range or count, because that could delete other tasks
-- later. They write last that the command was carried out.
local due, kinds, lease, dead, task, follows, run, err, wake, meta, crew, past, limits = unpack(KEYS)
local call, byte, sub, match = redis.call, string.byte, string.sub, string.match
local ARGV, tonumber = ARGV, tonumber -- a global is looked up each time
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function int(n) return string.format('%.0f', tonumber(n)) end

-- Usually the client knows this shard.
local m = call('HMGET', meta, 'schema', 'armed', unpack(ARGV, 3, 2 + ARGV[2]))
if m[1] ~= ARGV[1] then
  local version, born = match(ARGV[1], '^([^@]*)@?(.*)$')
  if m[1] and match(m[1], '^[^@]*') ~= version then
    return redis.error_reply('TICKLESS schema ' .. m[1])
  end
  if not m[1] and born ~= '' then
    return redis.error_reply('TICKLESS lost')
  end
  -- The first command creates the shard.
  if not m[1] then
    m[1] = version .. '@' .. int(now)
    -- A value of more than 64 bytes makes meta a hash table. A small hash is a list, which
    -- Redis would search from its beginning for each sender.
    call('HSET', meta, 'schema', m[1], 'table', string.rep('-', 65))
  end
  return redis.error_reply('TICKLESS is ' .. m[1] .. ' ' .. int(now))
end
local armed = tonumber(m[2] or '')
local first = 3 + ARGV[2] -- of the script's own arguments
local claims = false -- whether a claim follows
