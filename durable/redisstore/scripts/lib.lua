-- What the quickest ways through the scripts do without.

-- permit lets the script go on if the server is full: Redis refuses commands that
-- may need memory until the script has called one that does not.
local function permit() call('HDEL', run, '') end

-- sweep looks, for each sender that the shard has not met, for some that it has not
-- heard of for a day, and forgets them.
local function sweep()
  if call('HLEN', meta) < 100 then return end
  local page = call('HSCAN', meta, call('HGET', meta, 'sweep') or '0', 'COUNT', 50)
  local old = {}
  for i = 1, #page[2], 2 do
    if string.sub(page[2][i], 1, 2) == 's:' then
      local seen = string.match(page[2][i + 1], '^%d+ (%d+) ')
      -- It may be a second too little.
      if (tonumber(seen or '') or 0) < now - 86401 * 1000000 then old[#old + 1] = page[2][i] end
    end
  end
  if #old > 0 then
    call('HDEL', meta, unpack(old))
    call('HDEL', crew, unpack(old))
  end
  call('HSET', meta, 'sweep', page[1])
end

-- when takes a time, or one that counts from now. The last one is that of package store.
local function when(s)
  if string.sub(s, 1, 1) == '+' then return math.min(now + tonumber(string.sub(s, 2)), 7258118399999999) end
  return tonumber(s)
end

-- watch wakes a worker up if a task is due before the moment for which one has
-- set its timer, and no claim follows: see round.lua.
local function watch(score)
  if not claims and (not armed or score < armed) then
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

local function has(flags, flag) return string.find(flags, flag, 1, true) end

-- kindOf returns the kind in a record, or nil if it is damaged.
local function kindOf(record)
  local a, b, c, d = string.byte(record or '', 18, 21)
  local kind = d and string.sub(record, 18, 21 + a * 256 + b + c * 256 + d)
  return kind and #kind == 4 + a * 256 + b + c * 256 + d and kind or nil
end

-- repeats reports whether a task repeats, as Task.Repeats of package store does.
local function repeats(id, record)
  local kind = kindOf(record)
  if not kind or string.find(id, '\0', 1, true) then return false end
  if string.sub(kind, 3, 4) ~= '\0\0' then return true end
  local fields = string.byte(record, 25 + #kind)
  return fields and string.byte(record, 18 + #kind) == 1 and math.floor(fields / 8) % 2 == 1
end

-- entryOf is what a task that was put aside is called in kinds.
local function entryOf(kind, score, id) return kind .. string.format('%016.0f', tonumber(score)) .. id end

-- place returns when a task that nobody has is due, which its run or else its
-- record says.
local function place(r, record)
  local token, _, _, at, _, next = parse(r)
  if r and next ~= '-' then return next end
  if r then return at end
  return string.match(record or '', '^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d') or int(now)
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

-- latest returns the last n of noted failures.
local function latest(old, n)
  local starts, at = {}, 1
  while at <= #old do
    local from, to, len = string.find(old, '^%d+ %d+ (%d+):', at)
    if not from then return '' end -- damaged
    starts[#starts + 1] = at
    at = to + 1 + tonumber(len)
  end
  if #starts > n then return string.sub(old, starts[#starts - n + 1]) end
  return old
end

-- note adds an attempt to a task's failures, of which it keeps the last ten.
local function note(id, attempt, text, more)
  local old = latest(more or call('HGET', err, id) or '', 9)
  call('HSET', err, id, old .. attempt .. ' ' .. int(now) .. ' ' .. #text .. ':' .. text)
end

-- bury makes a dead letter of a task.
local function bury(id, attempt, crashes, at, text)
  note(id, attempt, text)
  call('HSET', run, id, state('0', attempt, crashes, at, '-', '-'))
  call('ZADD', dead, int(now), id)
end

-- wait makes a task, of which nothing has been tried yet, due at a time.
local function wait(id, score)
  call('HSET', run, id, state('0', 0, 0, score, '-', '-'))
  call('HDEL', err, id)
  call('ZADD', due, score, id)
  watch(tonumber(score))
end

-- follow puts a task that was scheduled again while it ran into its new place.
local function follow(id, flags, next)
  local beside = id .. '\0new'
  local record = has(flags, 'n') and call('HGET', task, beside)
  if record then call('HSET', task, id, record) end
  wait(id, next)
  if record then call('HDEL', task, beside) end
end
