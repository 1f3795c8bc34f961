-- merge returns the next n entries of several ZSETs, ordered by time: their ids and times. It
-- stops at the time last. less orders entries with equal times. The sources are a heap
-- after the first call: the first one has the next entry.
--
-- A source describes a ZSET. key is its key, and from is the index of its next entry.
local function merge(sources, n, last, less)
  local ids, times, size = {}, {}, math.ceil(n / #sources)
  -- step moves a source to its next entry, and returns false if there is none.
  local function step(s)
    s.i = s.i + 2
    if not s.page[s.i] and not s.over then
      s.page, s.i = call('ZRANGE', s.key, s.from, s.from + size - 1, 'WITHSCORES'), 1
      s.from, s.over = s.from + size, #s.page < 2 * size
    end
    s.score = tonumber(s.page[s.i + 1] or '')
    return s.score and s.score <= last
  end
  local function before(a, b)
    return a.score < b.score or a.score == b.score and less(a.page[a.i], b.page[b.i])
  end
  -- sink moves the source at i down to its place in the heap.
  local function sink(i)
    local s = sources[i]
    while true do
      local child = 2 * i
      if sources[child + 1] and before(sources[child + 1], sources[child]) then child = child + 1 end
      if not sources[child] or not before(sources[child], s) then break end
      sources[i], i = sources[child], child
    end
    sources[i] = s
  end
  if #sources > 0 and not sources[1].page then
    for i = #sources, 1, -1 do
      local s = sources[i]
      s.page, s.i = {}, -1
      if not step(s) then table.remove(sources, i) end
    end
    for i = math.floor(#sources / 2), 1, -1 do sink(i) end
  end
  while #ids < n and sources[1] do
    local s = sources[1]
    ids[#ids + 1], times[#times + 1] = s.page[s.i], s.page[s.i + 1]
    if not step(s) then
      sources[1] = sources[#sources]
      sources[#sources] = nil
    end
    if sources[1] then sink(1) end
  end
  return ids, times
end
