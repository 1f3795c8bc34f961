-- merge returns the next n entries of several ZSETs, ordered by time: their ids, times
-- and sources. It stops at the time last. If less is given, it orders entries with equal
-- times.
--
-- A source describes a ZSET. key is its key, and from is the index of its next entry. A
-- caller can set score to false to end the source.
local function merge(sources, n, last, less)
  local ids, times, sourceOf, k, size = {}, {}, {}, 0, math.ceil(n / #sources)
  local function step(s)
    local page, i = s.page, s.i + 2
    if not page[i] and not s.over then
      if s.from == 0 then -- reads no entry after last
        page = call('ZRANGEBYSCORE', s.key, '-inf', int(last), 'WITHSCORES', 'LIMIT', 0, size)
      else
        page = call('ZRANGE', s.key, s.from, s.from + size - 1, 'WITHSCORES')
      end
      i = 1
      s.page, s.from, s.over = page, s.from + size, #page < 2 * size
    end
    local score = tonumber(page[i + 1] or '')
    s.i, s.score = i, score and score <= last and score
  end
  for _, s in ipairs(sources) do
    if not s.page then s.page, s.i, s.taken = {}, -1, true end
    if s.taken and s.score ~= false then step(s) end
    s.taken = false
  end
  while k < n do
    local best, second
    for _, s in ipairs(sources) do
      local score = s.score
      if not score then
        -- The source has no more entries.
      elseif not best or score < best.score or less and score == best.score and less(s.page[s.i], best.page[best.i]) then
        best, second = s, best and best.score
      elseif not second or score < second then
        second = score
      end
    end
    if not best then break end
    local page, i, most = best.page, best.i, second or last + 1
    repeat
      k = k + 1
      ids[k], times[k], sourceOf[k] = page[i], page[i + 1], best
      if k == n then
        best.i, best.taken = i, true -- read the next page only if it is needed
        return ids, times, sourceOf
      end
      i = i + 2
    until not page[i] or tonumber(page[i + 1]) >= most
    best.i = i - 2
    step(best)
  end
  return ids, times, sourceOf
end
