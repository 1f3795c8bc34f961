--include heap.lua
-- merge returns the next n entries of several ZSETs, ordered by time: their ids and times. It
-- stops at the time last. less orders entries with equal times. The sources are a heap
-- after the first call: the first one has the next entry.
--
-- A source describes a ZSET. key is its key, and from is the index of its next entry. If
-- score is set at first, the next entry has this time or a later one, and is read when it is
-- its turn. If fetch is not nil, it adds sources whose entries have the time known or later.
local function merge(sources, n, last, less)
  local ids, times, size = {}, {}, math.ceil(n / math.max(#sources, 1))
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
    return a.score < b.score or a.score == b.score and b.page and (not a.page or less(a.page[a.i], b.page[b.i]))
  end
  local function open(s)
    s.page, s.i = {}, -1
    return step(s)
  end
  if not sources.merged then
    local opened = {}
    for _, s in ipairs(sources) do
      if open(s) then opened[#opened + 1] = s end
    end
    for i = 1, #sources do sources[i] = opened[i] end
    heapify(sources, before)
    sources.merged = true
  end
  while #ids < n and (sources[1] or sources.fetch) do
    while sources.fetch and (not sources[1] or sources[1].score >= sources.known) do
      sources.fetch()
      heapify(sources, before)
    end
    if not sources[1] then break end
    local s, hasNext = sources[1], nil
    if s.page then
      ids[#ids + 1], times[#times + 1] = s.page[s.i], s.page[s.i + 1]
      hasNext = step(s)
    else
      hasNext = open(s)
    end
    if not hasNext then
      sources[1] = sources[#sources]
      sources[#sources] = nil
    end
    sink(sources, 1, before)
  end
  return ids, times
end
