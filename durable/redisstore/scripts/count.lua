--include group.lua
-- countRunning returns the number of running tasks of each handler, and of each group.
local function countRunning()
  local counts, ids = {}, call('ZRANGE', lease, 0, -1)
  for from = 1, #ids, 1000 do
    for _, r in ipairs(call('HMGET', run, unpack(ids, from, math.min(#ids, from + 999)))) do
      local token, kind = match(r or '', '^(%d+) %d+ %d+ %d+ %S+ %S+ (.*)$')
      local size = match(kind or '', '^%d+')
      if size and token ~= '0' then
        local handler = sub(kind, 1, #size + 1 + size)
        counts[handler] = (counts[handler] or 0) + 1
        local group = groupOf(kind)
        if group then counts[group] = (counts[group] or 0) + 1 end
      end
    end
  end
  return counts
end
