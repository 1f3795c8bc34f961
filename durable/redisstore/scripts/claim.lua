--include heap.lua
-- pick picks the tasks of a claim. n, spare, listID, rooms, suspects, only and maxCrashes of the
-- claim are as in round.lua. Afterwards it has
--
--   count      how many tasks it may get, at most n + 1
--   ids, times, froms
--              these tasks, when they are due, and their sources
--   sources    the kinds of which tasks were read
--   strange    due kinds that the worker lacks, as sources
--   halted     due kinds of paused handlers
--   more       true if more tasks are due, or may be
--   exceeded   true if a due task has no room
--   soonest    when a rate lets a task begin
--   limited, waiting, pausedHandlers
--              parts of the answer
--
-- A source is a kind with due tasks: key is its key, table the ZSET that has the kind, at its
-- time there, and score a time no later than that of its next task. page has the tasks that were
-- read last, with their times; the next one is at i, and before is how many came before the page.
-- If a limit holds the kind back, aside is the limit's name, or permit is when a rate lets the next
-- task begin. group is the name of the kind's group, and blocked is true if the group's limit is met.
local function pick(claim, groupOf, limiting)
  local asked, count, byHandler, byGroup, isHalted = claim.n + 1, 0, {}, {}, {}
  local crowded, nowText = false, int(now)
  local ordinary = claim.spare > 0 and claim.n - claim.spare or math.huge
  local mosts, isBusy = {}, {}
  for index, most, busy in string.gmatch(claim.rooms, ' (%d+):(%d+):(%d)') do mosts[index], isBusy[index] = tonumber(most), busy == '1' end
  if saved.stopped then
    local names = call('HKEYS', stopped)
    for _, handler in ipairs(names) do isHalted[handler] = true end
    claim.pausedHandlers = table.concat(names)
  end

  -- The sources whose tasks come next are a heap. Kinds that were not read are due at readUntil or
  -- later, or wait for a rate.
  local heap, seen, looked, readUntil, places = {}, {}, 0, -1, {}
  local function before(a, b) return a.score < b.score or a.score == b.score and a.page and not b.page end
  for _, key in ipairs({kinds, aside .. ':' .. claim.listID, groupOf and groups .. 'kinds' or nil}) do
    places[#places + 1] = {key = key, from = 0, size = limiting and 128 or math.min(asked + 7, 128), readUntil = -1}
  end

  -- readKinds reads the next due kinds of a place. Those that the worker lacks go to strange.
  local function readKinds(place)
    local page = call('ZRANGEBYSCORE', place.key, '-inf', nowText, 'WITHSCORES', 'LIMIT', place.from, place.size)
    place.readUntil = #page == 2 * place.size and tonumber(page[#page]) or math.huge
    place.from, place.size, looked = place.from + place.size, 128, looked + #page / 2
    if #page == 0 then return end
    local asks, parts = {}, {}
    for i = 1, #page, 2 do
      local kind = page[i]
      local suspect = byte(kind, 1) == 33
      local plain = suspect and sub(kind, 2) or kind
      local size = match(plain, '^%d+')
      local to = size and #size + 1 + size or 0
      local schedule, group = size and sub(plain, to + 1) or '', nil
      if groupOf and size then
        local name, _, plainSchedule = groupOf(plain)
        group, schedule = name, plainSchedule or schedule
      end
      local k = #asks + 1
      parts[#parts + 1] = {kind = kind, plain = plain, suspect = suspect, handler = sub(plain, 1, to), schedule = schedule, group = group, key = due .. kind,
        table = place.key, at = tonumber(page[i + 1]), score = tonumber(page[i + 1]), ask = k, before = 0, ids = {}}
      asks[k] = 'h' .. parts[#parts].handler
      if schedule ~= '' then asks[k + 1] = 's' .. #schedule .. ':' .. schedule end
    end
    local known = call('HMGET', lists .. claim.listID, unpack(asks))
    for _, s in ipairs(parts) do
      local index = known[s.ask]
      -- Every worker claims tasks with damaged records, and makes them dead letters.
      if isHalted[s.handler] and index then
        claim.halted[#claim.halted + 1] = s
      elseif s.handler ~= '' and not (index and (s.schedule == '' or known[s.ask + 1])) then
        claim.strange[#claim.strange + 1] = s
      else
        s.index = index or '-'
        local l = limiting and s.handler ~= '' and limiting.of(s.handler)
        if l and (l.every > 0 or l.ofGroup ~= '') then
          -- The kind's place may be that of a permit.
          s.score = math.min(s.score, tonumber(call('ZRANGE', s.key, 0, 0, 'WITHSCORES')[2] or '') or s.score)
        end
        local other = seen[s.kind]
        if not other then
          heap[#heap + 1], seen[s.kind] = s, s
        elseif not other.page then
          -- A kind that is set aside is also in kinds if a task was added later.
          other.score = math.min(other.score, s.score)
        end
      end
    end
    heapify(heap, before)
  end

  -- groupRoomOf returns how many tasks of the source's group the claim may get.
  local function groupRoomOf(s)
    local g = byGroup[s.group]
    if not g then
      local l = limiting and limiting.ofGroup(s.group, s.handler)
      g = {most = 16, taken = 0} -- MaxOfGroup of package store
      local k = l and limiting.available(l)
      if k and k <= g.most then g.most, g.limit = k, l end
      byGroup[s.group] = g
    end
    return g
  end

  -- groupHasRoom reports whether the claim may get one more due task of the source's group.
  local function groupHasRoom(s)
    if not s.group then return true end
    local g = groupRoomOf(s)
    if g.taken < g.most then return true end
    local l = g.limit
    if l and l.most > 0 and l.running + g.taken >= l.most then
      s.aside, s.blocked, claim.limited = '=' .. s.group, true, 1
    elseif l then
      local _, at = limiting.available(l)
      s.permit, s.blocked = at + g.taken * l.every, true
      claim.soonest = math.min(claim.soonest or s.permit, s.permit)
    else
      crowded = true
    end
    return false
  end

  local function roomOf(s)
    local r = byHandler[s.handler]
    if not r then
      r = {most = math.huge, taken = 0}
      local most = mosts[s.index]
      if most then r.most, r.busy = most == claim.n and math.huge or most, isBusy[s.index] end
      local l = limiting and r.most > 0 and limiting.of(s.handler)
      local k = l and limiting.available(l)
      if k and k <= r.most then r.most, r.limit = k, l end
      byHandler[s.handler] = r
    end
    return r
  end

  -- hasRoom reports whether the claim may get one more due task of the source.
  local function hasRoom(s)
    if not groupHasRoom(s) then return false end
    local r = roomOf(s)
    local l = r.taken >= r.most and r.limit
    if l and l.most > 0 and l.running + r.taken >= l.most then
      s.aside, claim.limited = '=' .. s.handler, 1
      if l.kept == '0' then l.kept, l.changed = '1', true end
    elseif l then
      local _, at = limiting.available(l)
      s.permit = at + r.taken * l.every
      claim.soonest = math.min(claim.soonest or s.permit, s.permit)
    elseif r.taken >= r.most or ordinary <= 0 and r.busy then
      claim.exceeded = true
    else
      return true
    end
    return false
  end

  -- takeSuspect reports whether the claim gets a suspect. No suspect overtakes another.
  local refused = false
  local function takeSuspect(r)
    local crashes = tonumber(match(r or '', '^%d+ %d+ (%d+)') or '0')
    local isLast = crashes + 1 >= claim.maxCrashes
    if claim.suspects > 0 and (claim.only or not isLast) then
      claim.suspects, claim.only = isLast and 0 or claim.suspects - 1, false
      return true
    end
    if claim.waiting == 0 then claim.waiting = claim.suspects > 0 and 2 or 1 end
    claim.suspects, refused = 0, true
    return false
  end

  -- readTasks reads the next due tasks of a source. It returns false if there are none.
  local function readTasks(s, size)
    s.before = s.page and s.from or 0
    s.page, s.i, s.from = call('ZRANGEBYSCORE', s.key, '-inf', nowText, 'WITHSCORES', 'LIMIT', s.before, size), 1, s.before + size
    s.over, s.score = #s.page < 2 * size, tonumber(s.page[2] or '')
    return s.score
  end

  -- take takes the next task of a source, if the claim has room. It returns false if the claim gets
  -- no more tasks of the source.
  local function take(s)
    if not hasRoom(s) or s.suspect and not takeSuspect(call('HGET', run, s.page[s.i])) then return false end
    local room = roomOf(s)
    room.taken, room.busy, ordinary, count = room.taken + 1, true, ordinary - 1, count + 1
    if s.group then groupRoomOf(s).taken = groupRoomOf(s).taken + 1 end
    claim.ids[count], claim.times[count], claim.froms[count] = s.page[s.i], s.page[s.i + 1], s
    s.i = s.i + 2
    if not s.page[s.i] then return not s.over and readTasks(s, 2 * s.from) end
    s.score = tonumber(s.page[s.i + 1])
    return true
  end

  while count < asked and not saved.paused do
    local s = heap[1]
    if readUntil < math.huge and not (s and s.score <= readUntil) then
      if looked > 1000 then break end
      local least = math.huge
      for _, place in ipairs(places) do
        if place.readUntil == readUntil then readKinds(place) end
        least = math.min(least, place.readUntil)
      end
      readUntil = least
    elseif not s then
      break
    else
      local continues = false
      if s.suspect and refused then
        -- No suspect overtakes another.
      elseif s.page then
        continues = take(s)
      else
        local r = roomOf(s)
        if (r.taken >= r.most and not r.limit or ordinary <= 0 and r.busy) and (not s.group or groupRoomOf(s).taken < groupRoomOf(s).most) then
          claim.exceeded = true
        else
          claim.sources[#claim.sources + 1] = s
          continues = readTasks(s, math.ceil((asked - count) / #heap) + 1)
        end
      end
      if not continues then
        heap[1] = heap[#heap]
        heap[#heap] = nil
      end
      sink(heap, 1, before)
    end
  end
  claim.count, claim.more = count, count == asked or readUntil < math.huge and not saved.paused or crowded

  -- recheck sets blocked and the like of a source as later claims will find it: the claim may have
  -- taken the last permit of its group.
  function claim.recheck(s)
    byGroup[s.group] = nil
    groupHasRoom(s)
  end
end
