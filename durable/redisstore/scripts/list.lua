-- list STATE N MIN MAX AT ID PREFIX HANDLER lists the entries of a state in the order of
-- their times and, at one time, of their ids, by bytes: at most N, those with times from
-- MIN to MAX, and after the one with AT and ID, unless AT is empty. PREFIX is that of the
-- ids, HANDLER that of the records, if it is not empty. The answer is for each of the
-- state's keys, which are one or two,
--
--   done at id entries
--
-- of which the first is 1 if there is nothing more, the next two are the last entry that
-- was looked at, and the list has, for each entry, id score record run failures
-- next, of which the last is the record of what follows.
--include clock.lua
local n, min, max, after, last = tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local prefix, handler = ARGV[8], ARGV[9]
local most, weight = 1000, 512 * 1024 -- entries, and bytes, that are looked at

-- later compares as a ZSET does, by bytes. Lua's own comparison follows the locale
-- of the server.
local function later(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

-- begin returns the index of the first entry.
local function begin(key)
  if after == '' then return call('ZCOUNT', key, '-inf', '(' .. min) end
  local low, high = call('ZCOUNT', key, '-inf', '(' .. after), call('ZCOUNT', key, '-inf', after)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if later(call('ZRANGE', key, middle, middle)[1], last) then high = middle else low = middle + 1 end
  end
  return math.max(low, call('ZCOUNT', key, '-inf', '(' .. min))
end

local function list(key)
  local from, ending = begin(key), call('ZCOUNT', key, '-inf', max)
  local looked, bytes, at, id, entries = 0, 0, after, last, {}
  while from < ending and #entries < 6 * n and looked < most and bytes < weight do
    local page = call('ZRANGE', key, from, math.min(from + 99, ending - 1), 'WITHSCORES')
    local i = 1
    while i <= #page and #entries < 6 * n and bytes < weight do
      at, id = int(page[i + 1]), page[i]
      from, looked, i = from + 1, looked + 1, i + 2
      if string.sub(id, 1, #prefix) == prefix then
        local record = call('HGET', task, id) or ''
        local a, b = string.byte(record, 18, 19)
        bytes = bytes + #record
        if handler == '' or b and string.sub(record, 22, 21 + a * 256 + b) == handler then
          local k = #entries
          entries[k + 1], entries[k + 2], entries[k + 3] = id, at, record
          entries[k + 4], entries[k + 5] = call('HGET', run, id) or '', call('HGET', err, id) or ''
          entries[k + 6] = key == lease and call('HGET', task, id .. '\0new') or ''
        end
      end
    end
  end
  return {from >= ending and 1 or 0, at, id, entries}
end

if ARGV[2] == '1' then return {list(due), list(aside)} end
return {list(ARGV[2] == '2' and lease or dead)}
