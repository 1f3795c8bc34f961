-- bringBack moves all kinds of a table that were set aside back to kinds, except those of paused
-- tasks.
local function bringBack(table)
  local list = call('ZRANGE', table, 0, -1, 'WITHSCORES')
  for from = 1, #list, 1000 do
    local pairs_, gone = {}, {}
    for i = from, math.min(#list, from + 999), 2 do
      local k = #pairs_
      if byte(list[i], 1) ~= 126 then
        pairs_[k + 1], pairs_[k + 2], gone[#gone + 1] = int(list[i + 1]), list[i], list[i]
      end
    end
    if #gone > 0 then
      call('ZADD', kinds, 'LT', unpack(pairs_))
      call('ZREM', table, unpack(gone))
    end
  end
end
