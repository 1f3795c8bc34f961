-- Limits over all workers: see store.Limit. The HASH limits has a field for each handler
-- with a limit: the length of the handler's name, a colon and the name. Its value is
--
--   most every burst running full kept rate
--
--   most     how many tasks may run at once, or 0 for any number
--   every    the microseconds between two claims, or 0 without a rate
--   burst    how many tasks may be claimed at once, or 0 without a rate
--   running  how many tasks are running
--   full     when burst tasks may be claimed at once again
--   kept     1 if kinds are set aside until another task ends. Other workers are woken then.
--   rate     the rate that the client has set
limited = {}

-- limitOf returns a handler's limit, or false.
function limitOf(handler)
  local l = limited[handler]
  if l == nil then
    local most, every, burst, running, full, kept, rate =
      match(call('HGET', limits, handler) or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d) (%S+)$')
    l = most and {most = tonumber(most), every = tonumber(every), burst = tonumber(burst),
      running = tonumber(running), full = tonumber(full), kept = kept, rate = rate} or false
    limited[handler] = l
  end
  return l
end

-- fullOf returns when burst tasks may be claimed at once again. It corrects this time
-- after a change of the clock or of the limit.
local function fullOf(l) return math.min(math.max(l.full, now), now + l.every * l.burst) end

-- available returns how many of the handler's tasks may be claimed. If only the rate prevents
-- a claim, it also returns when the next task may be claimed.
function available(l)
  local k, size = l.most > 0 and math.max(0, l.most - l.running) or math.huge, l.every * l.burst
  if k == 0 or size == 0 then return k, nil end
  return math.min(k, math.floor((now + size - fullOf(l)) / l.every)), fullOf(l) - size + l.every
end

-- addRunning counts a claimed task as running.
function addRunning(l) l.running, l.full, l.changed = l.running + 1, fullOf(l) + l.every, true end

-- removeRunning counts the task of the run r as no longer running.
function removeRunning(r)
  local kind = match(r, '^%d+ %d+ %d+ %d+ %S+ %S+ (.*)$')
  local size = match(kind or '', '^%d+')
  local l = size and limitOf(sub(kind, 1, #size + 1 + size))
  if not l then return end
  l.running, l.changed = math.max(0, l.running - 1), true
  if l.kept == '1' then
--include aside.lua
    bringBack(aside .. ':=' .. sub(kind, 1, #size + 1 + size))
    l.kept, l.freed = '0', true
  end
end
