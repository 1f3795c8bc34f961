-- Limits over all workers: see store.Limit. The HASH limits has a field for each handler
-- with a limit: the length of the handler's name, a colon and the name. Its value is
--
--   most every burst running full kept rate
--
-- and with a limit of the handler's groups "most every burst rate" after a space, for each of
-- them.
--
--   most     how many tasks may run at once, or 0 for any number
--   every    the microseconds between two claims, or 0 without a rate
--   burst    how many tasks may be claimed at once, or 0 without a rate
--   running  how many tasks are running
--   full     when burst tasks may be claimed at once again
--   kept     1 if kinds are set aside until another task ends. Other workers are woken then.
--   rate     the rate that the client has set

-- loadLimits returns functions that read and change limits, until save stores them.
local function loadLimits()
--include aside.lua
  local byHandler, byGroup, limiting = {}, {}, {}

  -- of returns a handler's limit, or false.
  function limiting.of(handler)
    local l = byHandler[handler]
    if l == nil then
      local most, every, burst, running, full, kept, rate, ofGroup =
        match(call('HGET', limits, handler) or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d) (%S+)(.*)$')
      l = most and {most = tonumber(most), every = tonumber(every), burst = tonumber(burst),
        running = tonumber(running), full = tonumber(full), kept = kept, rate = rate, ofGroup = ofGroup} or false
      byHandler[handler] = l
    end
    return l
  end

  -- ofGroup returns the limit of a group of a handler, or false.
  function limiting.ofGroup(group, handler)
    local g = byGroup[group]
    if g == nil then
      local l = limiting.of(handler)
      local most, every, burst = match(l and l.ofGroup or '', '^ (%d+) (%d+) (%d+) ')
      local running, full = match(most and call('HGET', groups .. 'state', group) or '', '^(%d+) (%d+)$')
      g = most and {most = tonumber(most), every = tonumber(every), burst = tonumber(burst),
        running = tonumber(running or '0'), full = tonumber(full or '0')} or false
      byGroup[group] = g
    end
    return g
  end

  -- fullOf returns when burst tasks may be claimed at once again. It corrects this time
  -- after a change of the clock or of the limit.
  local function fullOf(l) return math.min(math.max(l.full, now), now + l.every * l.burst) end

  -- available returns how many of the handler's tasks may be claimed. If only the rate prevents
  -- a claim, it also returns when the next task may be claimed.
  function limiting.available(l)
    local k, size = l.most > 0 and math.max(0, l.most - l.running) or math.huge, l.every * l.burst
    if k == 0 or size == 0 then return k, nil end
    return math.min(k, math.floor((now + size - fullOf(l)) / l.every)), fullOf(l) - size + l.every
  end

  -- add counts a claimed task as running.
  function limiting.add(l) l.running, l.full, l.changed = l.running + 1, fullOf(l) + l.every, true end

  -- remove counts the task of the run r as no longer running.
  function limiting.remove(r)
    local kind = match(r, '^%d+ %d+ %d+ %d+ %S+ %S+ (.*)$')
    local size = match(kind or '', '^%d+')
    local l = size and limiting.of(sub(kind, 1, #size + 1 + size))
    if not l then return end
    local group = groupOf(kind)
    local g = group and limiting.ofGroup(group, sub(kind, 1, #size + 1 + size))
    if g then
      g.running, g.changed = math.max(0, g.running - 1), true
      g.freed = unblock(group) or g.freed
    end
    l.running, l.changed = math.max(0, l.running - 1), true
    if l.kept == '1' then
      bringBack(aside .. ':=' .. sub(kind, 1, #size + 1 + size))
      l.kept, l.freed = '0', true
    end
  end

  -- save stores the limits that have changed. It returns whether one of them lets a task
  -- begin that it has held back.
  function limiting.save()
    local freed = false
    for handler, l in pairs(byHandler) do
      if l and l.changed then
        freed = freed or l.freed and l.kept == '0' and l.running < l.most
        call('HSET', limits, handler, table.concat({l.most, int(l.every), l.burst, l.running, int(l.full), l.kept, l.rate}, ' ') .. l.ofGroup)
      end
    end
    for group, g in pairs(byGroup) do
      if g and g.changed then
        freed = freed or g.freed and (g.most == 0 or g.running < g.most)
        local full = fullOf(g)
        if g.running == 0 and full <= now then
          call('HDEL', groups .. 'state', group)
        else
          if g.running == 0 then call('ZADD', groups .. 'idle', int(full), group) end
          call('HSET', groups .. 'state', group, int(g.running) .. ' ' .. int(full))
        end
      end
    end
    return freed
  end

  -- dropIdle deletes the states of some groups that run nothing and whose rates allow a full
  -- burst again.
  function limiting.dropIdle()
    local list = call('ZRANGEBYSCORE', groups .. 'idle', '-inf', int(now), 'LIMIT', 0, 100)
    for _, group in ipairs(list) do
      local running, full = match(call('HGET', groups .. 'state', group) or '', '^(%d+) (%d+)$')
      if running == '0' and tonumber(full) <= now then call('HDEL', groups .. 'state', group) end
    end
    if #list > 0 then call('ZREM', groups .. 'idle', unpack(list)) end
  end

  return limiting
end
