-- pick picks the tasks of a claim. n, spare, listID, rooms, suspects, only and maxCrashes of the
-- claim are as in round.lua. Afterwards it has
--
--   count      how many tasks it may get, at most n + 1
--   ids, times, froms
--              these tasks, when they are due, and their sources
--   sources    the kinds that were read
--   strange    due kinds that the worker lacks, as sources
--   halted     due kinds of paused handlers
--   more       true if more tasks are due
--   moreHeads  true if more kinds are due than were read
--   exceeded   true if a due task has no room
--   soonest    when a rate lets a task begin
--   limited, waiting, pausedHandlers
--              parts of the answer
--
-- A source is a kind with due tasks: key is its key, table the ZSET that has the kind, at its
-- time there, first a time no later than its first task, and from the index of its next entry.
-- closed is true if the claim has no more room for the kind. If a limit holds the kind back, aside
-- is the limit's name, or permit is when a rate lets the next task begin. group is the name of the
-- kind's group, and blocked is true if the group's limit is met.
local function pick(claim, groupOf, limiting)
  local asked, count, heads, byHandler, byGroup, isHalted = claim.n + 1, 0, {}, {}, {}, {}
  local readUntil, moreHeads, crowded, unsorted = math.huge, false, false, groupOf ~= nil
  local ordinary = claim.spare > 0 and claim.n - claim.spare or math.huge
  local own = aside .. ':' .. claim.listID
  if saved.stopped then
    local names = call('HKEYS', stopped)
    for _, handler in ipairs(names) do isHalted[handler] = true end
    claim.pausedHandlers = table.concat(names)
  end

  -- collect reads the first due kinds of a ZSET. Those that the worker lacks go to strange.
  local seen = {}
  local function collect(key)
    local from, found, page = 0, 0, nil
    repeat
      page = call('ZRANGEBYSCORE', key, '-inf', int(now), 'WITHSCORES', 'LIMIT', from, 128)
      from = from + 128
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
        parts[i] = {kind = kind, plain = plain, suspect = suspect, handler = sub(plain, 1, to), schedule = schedule, group = group, key = due .. kind,
          table = key, at = tonumber(page[i + 1]), first = tonumber(page[i + 1]), from = 0, ids = {}}
        asks[i] = 'h' .. parts[i].handler
        asks[i + 1] = 's' .. #schedule .. ':' .. schedule
      end
      local known = #asks > 0 and call('HMGET', lists .. claim.listID, unpack(asks))
      for i = 1, #page, 2 do
        local s = parts[i]
        -- Every worker claims tasks with damaged records, and makes them dead letters.
        if isHalted[s.handler] and known[i] then
          claim.halted[#claim.halted + 1] = s
        elseif s.handler == '' or known[i] and (s.schedule == '' or known[i + 1]) then
          s.index, found = known[i] or '-', found + 1
          local l = limiting and s.handler ~= '' and limiting.of(s.handler)
          if l and (l.every > 0 or l.ofGroup ~= '') then
            -- The kind's place may be that of a permit.
            s.first = math.min(s.first, tonumber(call('ZRANGE', s.key, 0, 0, 'WITHSCORES')[2] or '') or s.first)
            unsorted = true
          end
          local other = seen[s.kind]
          if other then
            -- A kind that is set aside is also in kinds if a task was added later.
            other.first = math.min(other.first, s.first)
          else
            heads[#heads + 1], seen[s.kind] = s, s
          end
        else
          claim.strange[#claim.strange + 1] = s
        end
      end
    until #page < 256 or found >= asked or from >= 1000
    -- Kinds that were not read have no earlier tasks.
    if #page == 256 then readUntil, moreHeads = math.min(readUntil, tonumber(page[256])), true end
  end
  if not saved.paused then
    collect(kinds)
    if groupOf then collect(groups .. 'kinds') end
    if call('ZCARD', own) > 0 then
      collect(own)
      unsorted = true
    end
    if unsorted then table.sort(heads, function(a, b) return a.first < b.first end) end
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
      local most, busy = match(claim.rooms, ' ' .. s.index .. ':(%d+):(%d)')
      if most and s.index ~= '-' then r.most, r.busy = tonumber(most) == claim.n and math.huge or tonumber(most), busy == '1' end
      local l = limiting and r.most > 0 and limiting.of(s.handler)
      local k = l and limiting.available(l)
      if k and k <= r.most then r.most, r.limit = k, l end
      byHandler[s.handler] = r
    end
    return r
  end

  -- hasRoom reports whether the claim may get one more due task of the source.
  local function hasRoom(s)
    if not groupHasRoom(s) then
      s.closed = true
      return false
    end
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
    s.closed = true
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

  -- candidates are due tasks of the sources that were read. text is the time as Redis writes it.
  local candidates, order, nextHead = {}, 0, 1
  local function read(s, size)
    local page = call('ZRANGE', s.key, s.from, s.from + size - 1, 'WITHSCORES')
    s.from, s.over = s.from + size, #page < 2 * size
    for i = 1, #page, 2 do
      local at = tonumber(page[i + 1])
      if at > now then
        s.over = true
        break
      end
      order = order + 1
      candidates[#candidates + 1], s.last = {at = at, order = order, id = page[i], text = page[i + 1], source = s}, at
    end
  end
  local function before(a, b) return a.at < b.at or a.at == b.at and a.order < b.order end

  while count < asked do
    -- All due tasks up to bound are candidates.
    local bound = math.min(heads[nextHead] and heads[nextHead].first or now, readUntil)
    local slowest
    for _, s in ipairs(claim.sources) do
      if not s.over and not s.closed and s.last <= bound then bound, slowest = s.last, s end
    end
    table.sort(candidates, before)
    local rest = {}
    for _, x in ipairs(candidates) do
      local s = x.source
      if s.suspect and refused then s.closed = true end
      if s.closed then
        -- The claim has no room for the task.
      elseif x.at > bound or count == asked then
        rest[#rest + 1] = x
      elseif hasRoom(s) then
        local r = s.suspect and call('HGET', run, x.id)
        if not s.suspect or takeSuspect(r) then
          local room = roomOf(s)
          room.taken, room.busy, ordinary, count = room.taken + 1, true, ordinary - 1, count + 1
          if s.group then groupRoomOf(s).taken = groupRoomOf(s).taken + 1 end
          claim.ids[count], claim.times[count], claim.froms[count] = x.id, x.text, s
        end
      end
    end
    candidates = rest
    if count == asked then break end
    if slowest then
      if not slowest.closed then read(slowest, 2 * slowest.from) end
    elseif heads[nextHead] then
      local most = math.min(asked - count, #heads - nextHead + 1)
      local size = math.ceil((asked - count) / most) + 1
      for i = nextHead, nextHead + most - 1 do
        local s = heads[i]
        local r = roomOf(s)
        if (r.taken >= r.most and not r.limit or ordinary <= 0 and r.busy) and (not s.group or groupRoomOf(s).taken < groupRoomOf(s).most) then
          claim.exceeded = true
        elseif not (s.suspect and refused) then
          claim.sources[#claim.sources + 1] = s
          read(s, size)
        end
      end
      nextHead = nextHead + most
    elseif #candidates == 0 or bound >= now or moreHeads then
      break
    end
  end
  claim.count, claim.moreHeads, claim.more = count, moreHeads, count == asked or moreHeads or crowded

  -- recheck sets blocked and the like of a source as later claims will find it: the claim may have
  -- taken the last permit of its group.
  function claim.recheck(s)
    byGroup[s.group] = nil
    groupHasRoom(s)
  end
end
