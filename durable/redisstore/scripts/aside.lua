--include group.lua
-- bringBack moves all kinds of a table that were set aside back to their places, except those
-- of paused tasks.
local function bringBack(table)
  local list = call('ZRANGE', table, 0, -1, 'WITHSCORES')
  for from = 1, #list, 1000 do
    local pairs_, gone = {[kinds] = {}, [groups .. 'kinds'] = {}}, {}
    for i = from, math.min(#list, from + 999), 2 do
      local place = pairs_[groupOf(list[i]) and groups .. 'kinds' or kinds]
      local k = #place
      if byte(list[i], 1) ~= 126 then
        place[k + 1], place[k + 2], gone[#gone + 1] = int(list[i + 1]), list[i], list[i]
      end
    end
    for place, moved in pairs(pairs_) do
      if #moved > 0 then call('ZADD', place, 'LT', unpack(moved)) end
    end
    if #gone > 0 then call('ZREM', table, unpack(gone)) end
  end
end

-- unblock brings the kinds of a group back that its limit has set aside.
local function unblock(group)
  local table = aside .. ':=' .. group
  local list = call('ZRANGE', table, 0, -1)
  bringBack(table)
  if #list > 0 then call('ZREM', groups .. 'blocked', unpack(list)) end
  return #list > 0
end
