-- What scripts need beyond begin.lua, which all but the quickest do.
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function int(n) return string.format('%.0f', tonumber(n)) end

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
    rouse()
    armed = score
  end
end

-- parse takes a run apart; one that is missing or damaged is one that nobody has.
local function parse(r)
  local token, attempt, crashes, at, flags, next =
    string.match(r or '', '^(%d+) (%d+) (%d+) (%d+) (%S+) (%S+)$')
  if not token then return '0', 0, 0, int(now), '-', '-' end
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
