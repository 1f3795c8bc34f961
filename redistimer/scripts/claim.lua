-- claim N LEASE WORKER NONCE CRASHES FORCE gives the worker at most N tasks that
-- are due, for LEASE microseconds. The answer is
--
--   own wait lease now [id record token attempt crashes due]...
--
-- wait is the time until the next task is due, lease that until the next lease
-- ends, both -1 if there is none. The same NONCE again gives the same tasks, since
-- an answer may be lost; N -1 says that the worker leaves.
--
-- One worker watches the shard, who set its timer for the first task that is due,
-- or will: it is the owner, and meta has the moment as armed. Whoever schedules
-- something earlier puts a member into wake, and the worker that gets it claims
-- and becomes the owner. Each other worker, who is told own = 0, looks a little
-- later than the task is due, in case the owner is gone, and becomes the owner
-- if it is. It matters for speed alone: any claim is right at any time.
--include lib.lua
begin()
local n, length, worker, nonce = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local most, force = tonumber(ARGV[6]), ARGV[7] == '1'
local f = call('HMGET', meta, 'fence', 'paused', 'owner', 'b:' .. worker)
local fence, paused, owner = tonumber(f[1] or '0'), f[2], f[3]
local gone = 100000 -- microseconds after which an owner was not in time

if n < 0 then
  call('HDEL', meta, 'b:' .. worker)
  if owner == worker then
    call('HDEL', meta, 'armed', 'owner')
    call('ZADD', wake, 0, 'w')
  end
  return {0, -1, -1, now}
end

local out = {1, -1, -1, now}
local deadline = int(now + length)

-- Leases that have run out.
local expired = call('ZRANGEBYSCORE', lease, '-inf', int(now), 'LIMIT', 0, 100)
if #expired > 0 then
  local runs = call('HMGET', run, unpack(expired))
  call('ZREM', lease, unpack(expired))
  local died = 0
  for i, id in ipairs(expired) do
    local token, attempt, crashes, at, flags, next = parse(runs[i])
    if next ~= '-' then
      follow(id, next)
    elseif flags == 'c' then
      forget(id)
    elseif crashes + 1 >= most then
      bury(id, attempt, crashes + 1, at, 'the worker crashed or lost its lease, as often as is allowed')
      died = died + 1
    else
      note(id, attempt, 'the worker crashed or lost its lease')
      call('HSET', run, id, state('0', attempt, crashes + 1, at, '-', '-'))
      call('ZADD', due, int(now), id)
    end
  end
  count('crashed', #expired)
  count('died', died)
end

local function give(id, record, token, attempt, crashes, at)
  local k = #out
  out[k + 1], out[k + 2], out[k + 3] = id, record, token
  out[k + 4], out[k + 5], out[k + 6] = attempt, crashes, tonumber(at)
end

local before, first, had, ends = string.match(f[4] or '', '^(%S+) (%d+) (%d+) (%d+)$')
if before == nonce then
  -- The answer to this claim was lost. Its tasks got their leases at one moment,
  -- by which they are found.
  local ids = call('ZRANGEBYSCORE', lease, ends, ends, 'LIMIT', 0, 1000)
  local runs = #ids > 0 and call('HMGET', run, unpack(ids)) or {}
  local low, high, leases = tonumber(first), tonumber(first) + tonumber(had), {}
  for i, id in ipairs(ids) do
    local token, attempt, crashes, at = parse(runs[i])
    token = tonumber(token)
    local record = token >= low and token < high and call('HGET', task, id)
    if record then
      give(id, record, token, attempt, crashes, at)
      leases[#leases + 1], leases[#leases + 2] = deadline, id
    end
  end
  if #leases > 0 then
    call('ZADD', lease, unpack(leases))
    call('HSET', meta, 'b:' .. worker, table.concat({nonce, first, had, deadline}, ' '))
  end
elseif n > 0 and not paused then
  local ids = call('ZRANGEBYSCORE', due, '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, n)
  if #ids > 0 then
    local scores = {}
    for i = 1, #ids, 2 do
      ids[(i + 1) / 2], scores[(i + 1) / 2] = ids[i], ids[i + 1]
    end
    for i = #ids, #scores + 1, -1 do ids[i] = nil end
    local records = call('HMGET', task, unpack(ids))
    local runs = call('HMGET', run, unpack(ids))
    -- Tokens do not go back if the server is replaced by one that knows less.
    local base = math.max(fence + 1, now)
    local token, leases, sets = base, {}, {}
    for i, id in ipairs(ids) do
      if records[i] then
        local attempt, crashes, at = 0, 0, int(scores[i])
        if runs[i] then
          local _
          _, attempt, crashes, at = parse(runs[i])
        end
        give(id, records[i], token, attempt + 1, crashes, at)
        leases[#leases + 1], leases[#leases + 2] = deadline, id
        sets[#sets + 1] = id
        sets[#sets + 1] = int(token) .. ' ' .. attempt + 1 .. ' ' .. crashes .. ' ' .. at .. ' - -'
        token = token + 1
      else
        -- An id without a task, which only damage can leave, cannot run.
        call('HDEL', run, id)
        call('HDEL', err, id)
      end
    end
    call('ZREM', due, unpack(ids))
    if token > base then
      call('ZADD', lease, unpack(leases))
      call('HSET', run, unpack(sets))
      call('HSET', meta, 'fence', int(token - 1),
        'b:' .. worker, table.concat({nonce, int(base), int(token - base), deadline}, ' '))
      count('claimed', token - base)
    end
  end
end

local head = call('ZRANGE', due, 0, 0, 'WITHSCORES')
local next = tonumber(head[2] or '')
if not next then
  if armed or owner then call('HDEL', meta, 'armed', 'owner') end
elseif paused then
  out[1] = 0
else
  out[2] = math.max(0, next - now)
  if next <= now and n == 0 then
    -- The worker has no room. Let another one have it.
    call('HDEL', meta, 'armed', 'owner')
    call('ZADD', wake, 0, 'w')
    out[1] = 0
  elseif force or not armed or not owner or armed > next or owner == worker or armed < now - gone then
    call('HSET', meta, 'armed', int(next), 'owner', worker)
    if next <= now then call('ZADD', wake, 0, 'w') end
  else
    if next <= now then call('ZADD', wake, 0, 'w') end
    out[1] = 0
  end
end
local ending = call('ZRANGE', lease, 0, 0, 'WITHSCORES')
if ending[2] then out[3] = math.max(0, tonumber(ending[2]) - now) end

if force then
  -- A worker's first claim in the shard clears up after those that are long gone.
  for _, field in ipairs(call('HKEYS', meta)) do
    if string.sub(field, 1, 2) == 'b:' then
      local last = string.match(call('HGET', meta, field), '(%d+)$')
      if tonumber(last or '0') < now - 3600 * 1000000 then call('HDEL', meta, field) end
    end
  end
end
return out
