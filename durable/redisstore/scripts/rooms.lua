-- What a claim has room for, of what merge returns: some, times and of become the first n + 1
-- of these tasks, and known their runs. Each handler's first come first, and then the others
-- in their order.
local asked, found, later = n + 1, {}, {}
known, picked = {}, {{}, {}, {}}
-- pick takes a task, if there is room, and reports whether there was.
local function pick(x, crashed)
  local r = x[3].room
  if r and r.most <= 0 or crashed and suspects <= 0 then return false end
  if r then r.most, r.first = r.most - 1, r.first - 1 end
  if crashed then suspects = suspects - 1 end
  local k = #known + 1
  picked[1][k], picked[2][k], picked[3][k], known[k] = x[1], x[2], x[3], x[4]
  return true
end
while #some > 0 do
  found = call('HMGET', run, unpack(some))
  for i, id in ipairs(some) do
    local s, crashes = of[i], match(found[i] or '', '^%d+ %d+ (%d+) ')
    local r, x, crashed = s.room, {id, times[i], s, found[i]}, crashes and crashes ~= '0'
    if #known == asked then break end
    if r and r.first <= 0 and r.most > 0 then
      -- Of so many of the others some may be too many, and all else is.
      later[#later + 1] = x
      if not crashed then r.later = (r.later or 0) + 1 end
      if r.later == asked then s.closed = true end
    elseif not pick(x, crashed) then
      kept = true
      s.closed = s.closed or r and r.most <= 0
    end
  end
  for _, s in ipairs(sources) do
    if s.closed or s.room and s.room.later == asked then s.score = false end
  end
  if #known == asked then break end
  some, times, of = merge(sources, asked, now)
end
for _, x in ipairs(later) do
  local crashes = match(x[4] or '', '^%d+ %d+ (%d+) ')
  if #known == asked then break end
  kept = not pick(x, crashes and crashes ~= '0') or kept
end
some, times, of = picked[1], picked[2], picked[3]
if kept and #known < asked then
  -- What it did not get is still the first of its kind.
  for _, s in ipairs(sources) do
    local at = not s.closed and tonumber(s.page[s.i + 1] or '')
    if at and at > now then soonest = math.min(soonest or at, at) end
  end
end
