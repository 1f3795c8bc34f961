-- Limits over all workers: see store.Limit. The HASH limits has, for each handler that has one,
-- by the length of its name, a colon and the name:
--
--   most every burst running full kept rate
--
--   most     how many may run, or 0 for any number
--   every    one may be claimed in so many microseconds, and burst at once; 0 without a rate
--   running  how many run
--   full     when burst may be claimed at once again
--   kept     1 if most keeps a due task back: then others are woken when there is room again
--   rate     as clients know it
limits, limited = sub(meta, 1, -5) .. 'limits', {}

-- limitOf returns the limit of a handler, or false.
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

-- fullOf returns when burst may be claimed at once again: the clock, or the limit, may have
-- been set.
local function fullOf(l) return math.min(math.max(l.full, now), now + l.every * l.burst) end

-- spare returns how many tasks of the handler may be claimed. If the rate alone keeps them
-- back, at is when the next one may be.
function spare(l)
  local k, size = l.most > 0 and math.max(0, l.most - l.running) or math.huge, l.every * l.burst
  if k == 0 or size == 0 then return k, nil end
  return math.min(k, math.floor((now + size - fullOf(l)) / l.every)), fullOf(l) - size + l.every
end

-- take takes a permit for a task that begins.
function take(l) l.running, l.full, l.changed = l.running + 1, fullOf(l) + l.every, true end

-- release gives back the permit of a run.
function release(r)
  local kind = match(r, '^%d+ %d+ %d+ %d+ %S+ %S+ (.*)$')
  local size = match(kind or '', '^%d+')
  local l = size and limitOf(sub(kind, 1, #size + 1 + size))
  if l then l.running, l.changed = math.max(0, l.running - 1), true end
end
