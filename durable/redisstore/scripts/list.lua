-- list STATE N MIN MAX AT ID HANDLER TEXT GROUP PAUSED lists entries of a state, ordered by
-- time and then by the bytes of the id: at most N, with times from MIN to MAX, after the entry AT
-- ID. STATE 5 lists finished runs by the times at which they ended, in the opposite order. With
-- HANDLER it lists only tasks of that handler, with TEXT only tasks whose failures contain that
-- text, and with GROUP only tasks of that group. With PAUSED, which is 1, it lists only paused
-- tasks. The answer is
--
--   done at id entries halted
--
-- done is 1 if there are no more entries. at and id are those of the last entry that was
-- read. entries has for each entry: id time record run failures next, where next is the
-- record that was scheduled while the task runs. halted has the paused handlers.
--include kind.lua
--include merge.lua
--include group.lua
--include kinds.lua
local state, n, min, max, after, last = ARGV[first], tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2]), tonumber(ARGV[first + 3]), ARGV[first + 4], ARGV[first + 5]
local handler, text, inGroup, paused = ARGV[first + 6], ARGV[first + 7], ARGV[first + 8], ARGV[first + 9] == '1'
local most, weight = 1000, 512 * 1024 -- maximum entries and bytes that are read
local named = #handler .. ':' .. handler

-- less compares by bytes, as a ZSET does. Lua's own comparison follows the server's
-- locale.
local function less(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = byte(a, i, i), byte(b, i, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- source returns a source for merge that starts after the last entry that was read.
local function source(key)
  local from = 0
  if after == '' or tonumber(after) < min then from = call('ZCOUNT', key, '-inf', '(' .. int(min)) end
  if after ~= '' then
    local low, high = call('ZCOUNT', key, '-inf', '(' .. after), call('ZCOUNT', key, '-inf', after)
    while low < high do
      local middle = math.floor((low + high) / 2)
      if less(last, call('ZRANGE', key, middle, middle)[1]) then high = middle else low = middle + 1 end
    end
    from = math.max(low, from)
  end
  return {key = key, from = from}
end

local sources = {}
if state == '1' then
  -- The first task of a kind in kinds is due at the kind's time or later, unless the kind waits
  -- for a rate, or is also set aside. Such kinds, and those that may have tasks before the page,
  -- are read at once. The others are read when the page comes to their times.
  local begin, from, isAside = math.max(min, (tonumber(after) or -1) + 1), 0, {}
  if call('HLEN', limits) > 0 then begin = math.huge end
  local function add(kind, score)
    if handler == '' or sub(plainKind(kind), 1, #named) == named then
      sources[#sources + 1] = score and {key = due .. kind, from = 0, score = score} or source(due .. kind)
    end
  end
  for _, kind in ipairs(call('ZRANGE', aside, 0, -1)) do
    isAside[kind] = true
    add(kind)
  end
  for _, kind in ipairs(call('ZRANGE', groups .. 'all', 0, -1)) do add(kind) end
  local first = begin == math.huge and '+inf' or '(' .. int(begin)
  for _, kind in ipairs(call('ZRANGEBYSCORE', kinds, '-inf', first)) do
    if not isAside[kind] then add(kind) end
  end
  function sources.fetch()
    local page = call('ZRANGEBYSCORE', kinds, int(begin), int(max), 'WITHSCORES', 'LIMIT', from, 256)
    from = from + 256
    for i = 1, #page, 2 do
      sources.known = tonumber(page[i + 1])
      if not isAside[page[i]] then add(page[i], sources.known) end
    end
    if #page < 512 then sources.fetch = nil end
  end
  sources.known = -1
  if begin == math.huge then sources.fetch = nil end
elseif state ~= '5' then
  if state == '4' then min = math.max(min, now + 1) end -- others have expired
  sources[1] = source(({lease, dead, past})[tonumber(state) - 1])
end

-- nextRuns returns the ids of finished runs and the times at which they ended, the latest first.
local skipped = 0
local function nextRuns()
  if after ~= '' and skipped == 0 then -- skip the runs at the time AT that come before the entry AT ID
    max = math.min(max, tonumber(after))
    local same = call('ZRANGEBYSCORE', ended, int(max), int(max))
    for i = #same, 1, -1 do
      if same[i] == last then skipped = #same - i + 1 end
    end
  end
  local page, ids, times = call('ZRANGE', ended, int(max), int(min), 'BYSCORE', 'REV', 'LIMIT', skipped, 100, 'WITHSCORES'), {}, {}
  for i = 1, #page, 2 do ids[#ids + 1], times[#times + 1] = page[i], page[i + 1] end
  skipped = skipped + #ids
  return ids, times
end

local looked, bytes, entries = 0, 0, {}
local halted = table.concat(call('HKEYS', stopped))
while #entries < 6 * n and looked < most and bytes < weight do
  local ids, times = {}, {}
  if state == '5' then
    ids, times = nextRuns()
  elseif #sources > 0 or sources.fetch then
    ids, times = merge(sources, math.min(n, 100), max, less)
  end
  if #ids == 0 then return {1, after, last, entries, halted} end
  for i, id in ipairs(ids) do
    if #entries == 6 * n or bytes >= weight then break end
    after, last, looked = int(times[i]), id, looked + 1
    local failures = call('HGET', err, id) or ''
    local record = (text == '' or string.find(failures, text, 1, true)) and (call('HGET', task, id) or '')
    local r, at = record and (call('HGET', run, id) or ''), after
    if state == '5' then
      at = record and call('ZSCORE', past, id)
      if not at or tonumber(at) <= now or record == '' then record = nil else at = int(at) end
    end
    if record and paused and not string.find(match(r, '^%d+ %d+ %d+ %d+ (%S+)') or '', 'p', 1, true) then record = nil end
    if record and (handler == '' or sub(kindOf(record), 1, #named) == named) and
        (inGroup == '' or sub(groupOf(kindOf(record)) or '', -#inGroup - 1) == '\0' .. inGroup) then
      local k = #entries
      entries[k + 1], entries[k + 2], entries[k + 3] = id, at, record
      entries[k + 4], entries[k + 5], entries[k + 6] = r, failures, call('HGET', follows, id) or ''
    end
    bytes = bytes + #(record or '')
  end
end
return {0, after, last, entries, halted}
