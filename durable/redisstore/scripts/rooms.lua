-- Pick the tasks of the claim from the result of merge: dueIDs, dueTimes and dueSources. A
-- handler may have a room, which limits its tasks in the claim: most is the maximum. The
-- first tasks of each handler, as many as the field first says, come before all others.
--
-- Afterwards dueIDs, dueTimes and dueSources are the first n + 1 tasks that the rooms allow,
-- and known has their runs.
local asked, fits, later, count = n + 1, true, {}, 0
-- crashesOf returns the number of crashes in a run, or nil if the run is no suspect.
local function crashesOf(r) return r and tonumber(match(r, '^%d+ %d+ (%d+) %d+ s') or '') end
known = #dueIDs > 0 and call('HMGET', run, unpack(dueIDs)) or {}
for i, s in ipairs(dueSources) do
  local r = s.room
  if crashesOf(known[i]) then fits = false end
  if r then
    r.taken = r.taken + 1
    if r.taken > (i > n and r.most or r.first) then fits = false end
  end
end
if not fits then -- rare: some tasks exceed their rooms
  local found, picked, waiting = known, {{}, {}, {}}, 0
  known = {}
  -- takeSuspect reports whether the claim gets a suspect. No suspect overtakes another.
  local function takeSuspect(crashes)
    local isLast = crashes + 1 >= maxCrashes
    if suspects > 0 and (only or not isLast) then
      suspects, only = isLast and 0 or suspects - 1, false
      return true
    end
    if waiting == 0 then waiting = suspects > 0 and 2 or 1 end
    suspects = 0
    return false
  end
  -- pick picks a task and returns true, if there is room for the task.
  local function pick(id, at, s, before, crashes)
    local r = s.room
    if r and r.most <= 0 or crashes and not takeSuspect(crashes) then return false end
    if r then r.most, r.first = r.most - 1, r.first - 1 end
    count = count + 1
    picked[1][count], picked[2][count], picked[3][count], known[count] = id, at, s, before
    return true
  end
  while #dueIDs > 0 do
    for i, id in ipairs(dueIDs) do
      if count == asked then break end
      local s, r, before = dueSources[i], dueSources[i].room, found[i]
      local crashed = crashesOf(before)
      if r and r.first <= 0 and r.most > 0 then
        -- This task exceeds first, but not most.
        later[#later + 1] = {id, dueTimes[i], s, before, crashed}
        if not crashed then r.later = r.later + 1 end
      elseif not pick(id, dueTimes[i], s, before, crashed) then
        exceeded = true
        s.closed = s.closed or r and r.most <= 0
      end
    end
    if count == asked then break end
    for _, s in ipairs(sources) do
      if s.closed or s.room and s.room.later >= asked then s.score = false end
    end
    dueIDs, dueTimes, dueSources = merge(sources, asked, now)
    found = #dueIDs > 0 and call('HMGET', run, unpack(dueIDs))
  end
  for _, x in ipairs(later) do
    if count == asked then break end
    exceeded = not pick(unpack(x, 1, 5)) or exceeded
  end
  dueIDs, dueTimes, dueSources = picked[1], picked[2], picked[3]
  if count < asked then out[14] = waiting end
  if exceeded and count < asked then
    -- Tasks without room stay the first of their kinds. So look for the first task that
    -- is not due yet.
    for _, s in ipairs(sources) do
      local at = not s.closed and tonumber(call('ZRANGEBYSCORE', s.key, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or '')
      if at then soonest = math.min(soonest or at, at) end
    end
  end
end
