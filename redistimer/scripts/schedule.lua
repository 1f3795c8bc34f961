-- schedule MODE [ID WHEN RECORD]... answers with a digit for each task, its
-- outcome. The first six bytes of a record are drawn anew for each call: a record
-- that is there already means that this very call comes for the second time.

-- One task alone that the shard does not know is what happens most.
if #ARGV == 5 and m[1] and call('HEXISTS', run, ARGV[3]) == 0 then
  local score = ARGV[4]
  if string.byte(score) == 43 then -- a plus sign
    local clock = call('TIME')
    score = string.format('%.0f', clock[1] * 1000000 + clock[2] + tonumber(string.sub(score, 2)))
  end
  if call('ZADD', due, 'NX', score, ARGV[3]) == 1 then
    call('HSET', task, ARGV[3], ARGV[5])
    if not armed or tonumber(score) < armed then rouse() end
    return '2'
  end
end

--include lib.lua

begin()
local mode = ARGV[2]
local created, replaced, kept, following = 2, 3, 4, 5

-- one schedules a task that the shard knows.
local function one(id, score, record)
  local old = call('HGET', task, id)
  if old and string.sub(old, 1, 6) == string.sub(record, 1, 6) then return created end
  local pending = tonumber(call('ZSCORE', due, id) or '')
  local r = call('HGET', run, id)
  if pending then
    if mode == 'n' or mode == 'e' and score >= pending or mode == 'l' and score <= pending then
      return kept
    end
    if r then
      call('HDEL', run, id)
      call('HDEL', err, id)
    end
  elseif r then
    if mode == 'n' then return kept end
    local token, attempt, crashes, at, flags, next = parse(r)
    if token ~= '0' then
      local there = tonumber(next)
      if there and (mode == 'e' and score >= there or mode == 'l' and score <= there) then
        return kept
      end
      call('HSET', task, id, record)
      call('HSET', run, id, state(token, attempt, crashes, at, flags, int(score)))
      return following
    end
    call('ZREM', dead, id)
    call('HDEL', run, id)
    call('HDEL', err, id)
  end
  call('HSET', task, id, record)
  call('ZADD', due, int(score), id)
  watch(score)
  return (pending or r) and replaced or created
end

local out, ids = {}, {}
for i = 3, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
local places = call('ZMSCORE', due, unpack(ids))
local runs = call('HMGET', run, unpack(ids))
local adds, sets, first, fresh = {}, {}, nil, {}
local n, byte = 0, string.byte
for i = 1, #ids do
  local id, at = ids[i], ARGV[3 * i + 1]
  if not places[i] and not runs[i] and not fresh[id] then
    local score
    if byte(at) == 43 then
      score = when(at)
      at = int(score)
    else
      score = tonumber(at)
    end
    fresh[id] = true
    adds[n + 1], adds[n + 2] = at, id
    sets[n + 1], sets[n + 2] = id, ARGV[3 * i + 2]
    n = n + 2
    if not first or score < first then first = score end
    out[i] = created
  else
    if fresh[id] and n > 0 then
      -- The same id again in a batch: what is there so far has to be written.
      call('ZADD', due, unpack(adds))
      call('HSET', task, unpack(sets))
      adds, sets, n = {}, {}, 0
    end
    out[i] = one(id, when(at), ARGV[3 * i + 2])
  end
end
if n > 0 then
  call('ZADD', due, unpack(adds))
  call('HSET', task, unpack(sets))
end
if first then watch(first) end
return table.concat(out)
