-- merge goes through the entries of several ZSETs in the order of their times, up to one,
-- and returns the next id each time that it is called, with its time and its source. A
-- source has the key and the index of its first entry, from. At one time the order is that
-- of less, if there is one.
local function merge(sources, size, last, less)
  local function step(s)
    if not s.page or s.i > #s.page then
      s.page, s.i = call('ZRANGE', s.key, s.from, s.from + size - 1, 'WITHSCORES'), 1
      s.from = s.from + size
    end
    s.id, s.score = s.page[s.i], tonumber(s.page[s.i + 1] or '')
    s.i = s.i + 2
    if not s.score or s.score > last then s.id = nil end
  end
  for _, s in ipairs(sources) do step(s) end
  return function()
    local best
    for _, s in ipairs(sources) do
      if s.id and (not best or s.score < best.score or less and s.score == best.score and less(s.id, best.id)) then
        best = s
      end
    end
    if not best then return nil end
    local id, score = best.id, best.page[best.i - 1]
    step(best)
    return id, score, best
  end
end
