-- schedule MODE [ID WHEN RECORD]... answers with a digit for each task, its
-- outcome. A WHEN that begins with a plus sign counts from now, and then the record
-- has no time in front.
--include once.lua

-- One task alone that the shard does not know is what happens most.
if #ARGV == 8 and last and call('HEXISTS', run, ARGV[6]) == 0 then
  local score, record = ARGV[7], ARGV[8]
  if string.byte(score) == 43 then -- a plus sign
    local clock = call('TIME')
    score = string.format('%016.0f', clock[1] * 1000000 + clock[2] + tonumber(string.sub(score, 2)))
    record = score .. record
  end
  if call('HSETNX', task, ARGV[6], record) == 1 then
    call('ZADD', due, score, ARGV[6])
    if not armed then
      -- Nobody watches. Who is roused now will, for this moment; what is due later
      -- rouses nobody until then.
      rouse()
      call('HSET', meta, ARGV[2], ARGV[3] .. ' 2', 'armed', score)
    else
      if tonumber(score) < armed then rouse() end
      call('HSET', meta, ARGV[2], ARGV[3] .. ' 2')
    end
    return '2'
  end
end

--include clock.lua
--include lib.lua

local mode = ARGV[5]
local created, replaced, kept, following = 2, 3, 4, 5

-- one schedules a task that the shard knows.
local function one(id, score, record)
  local pending = tonumber(call('ZSCORE', due, id) or '')
  local r = call('HGET', run, id)
  if pending then
    if mode == 'n' or mode == 'e' and score >= pending or mode == 'l' and score <= pending then
      return kept
    end
  elseif r then
    if mode == 'n' then return kept end
    local token, attempt, crashes, at, flags, next = parse(r)
    if token ~= '0' then
      local there = tonumber(next)
      if there and (mode == 'e' and score >= there or mode == 'l' and score <= there) then
        return kept
      end
      -- The record of what runs stays: the answer that gave it to a worker may be
      -- lost, and is given again.
      call('HSET', task, id .. '\0new', record)
      flags = has(flags, 'c') and 'cn' or 'n'
      call('HSET', run, id, state(token, attempt, crashes, at, flags, int(score)))
      return following
    end
  end
  call('HSET', task, id, record)
  if r then
    call('HDEL', run, id)
    call('HDEL', err, id)
  end
  call('ZADD', due, int(score), id)
  if r and not pending then call('ZREM', dead, id) end
  watch(score)
  return (pending or r) and replaced or created
end

local out, ids = {}, {}
for i = 6, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
local places = call('ZMSCORE', due, unpack(ids))
local runs = call('HMGET', run, unpack(ids))
local adds, sets, first, fresh = {}, {}, nil, {}
local n, byte = 0, string.byte
local function write()
  call('HSET', task, unpack(sets))
  call('ZADD', due, unpack(adds))
  adds, sets, n = {}, {}, 0
end
for i = 1, #ids do
  local id, at, record = ids[i], ARGV[3 * i + 4], ARGV[3 * i + 5]
  local score
  if byte(at) == 43 then
    score = when(at)
    at = string.format('%016.0f', score)
    record = at .. record
  else
    score = tonumber(at)
  end
  if not places[i] and not runs[i] and not fresh[id] then
    fresh[id] = true
    adds[n + 1], adds[n + 2] = at, id
    sets[n + 1], sets[n + 2] = id, record
    n = n + 2
    if not first or score < first then first = score end
    out[i] = created
  else
    -- The same id again in a batch: what is there so far has to be written.
    if fresh[id] and n > 0 then write() end
    out[i] = one(id, score, record)
  end
end
if n > 0 then write() end
if first then watch(first) end
sweep()
return remember(table.concat(out))
