-- runs N MIN MAX AT ID HANDLER TEXT GROUP lists finished runs, the latest first and, at the same
-- time, the last id first: at most N that ended from MIN to MAX, before the run AT ID. HANDLER,
-- TEXT and GROUP, and the answer, are as in list.lua.
--include kind.lua
--include group.lua
local n, min, max, after, last = tonumber(ARGV[first]), ARGV[first + 1], ARGV[first + 2], ARGV[first + 3], ARGV[first + 4]
local handler, text, inGroup = ARGV[first + 5], ARGV[first + 6], ARGV[first + 7]
local most, weight = 1000, 512 * 1024 -- maximum entries and bytes that are read
local named = #handler .. ':' .. handler

-- Skip the runs at the time AT that come before the position in the list.
local from = 0
if after ~= '' and tonumber(after) <= tonumber(max) then
  max = after
  local same = call('ZRANGEBYSCORE', ended, after, after)
  for i = #same, 1, -1 do
    if same[i] == last then from = #same - i + 1 end
  end
end
local looked, bytes, entries = 0, 0, {}
while #entries < 6 * n and looked < most and bytes < weight do
  local page = call('ZRANGE', ended, max, min, 'BYSCORE', 'REV', 'LIMIT', from, 100, 'WITHSCORES')
  if #page == 0 then return {1, after, last, entries, ''} end
  for i = 1, #page, 2 do
    if #entries == 6 * n or bytes >= weight then break end
    local id = page[i]
    after, last, looked, from = int(page[i + 1]), id, looked + 1, from + 1
    local failures = call('HGET', err, id) or ''
    local record = (text == '' or string.find(failures, text, 1, true)) and call('HGET', task, id)
    local at = record and call('ZSCORE', past, id)
    if at and tonumber(at) > now and (handler == '' or sub(kindOf(record), 1, #named) == named) and
      (inGroup == '' or sub(groupOf(kindOf(record)) or '', -#inGroup - 1) == '\0' .. inGroup) then
      local k = #entries
      entries[k + 1], entries[k + 2], entries[k + 3] = id, int(at), record
      entries[k + 4], entries[k + 5], entries[k + 6] = call('HGET', run, id) or '', failures, ''
    end
    bytes = bytes + #(record or '')
  end
end
return {0, after, last, entries, ''}
