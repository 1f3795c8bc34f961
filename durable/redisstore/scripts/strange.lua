-- setAside sets due kinds aside that the worker lacks. It returns whether another worker has them.
local function setAside(strange)
  local asks = {}
  for i, s in ipairs(strange) do asks[2 * i - 1], asks[2 * i] = 'h' .. s.handler, 's' .. #s.schedule .. ':' .. s.schedule end
  local tables, gone, areKnown = {}, {}, false
  for _, s in ipairs(strange) do
    local key = s.group and groups .. 'aside' or aside
    local list = tables[key] or {}
    list[#list + 1], list[#list + 2], tables[key] = int(s.at), s.kind, list
    gone[s.table] = gone[s.table] or {}
    table.insert(gone[s.table], s.kind)
  end
  for id in string.gmatch(call('HGET', meta, 'lists') or '', '%x+') do
    local known, list = call('HMGET', lists .. id, unpack(asks)), {}
    for i, s in ipairs(strange) do
      if known[2 * i - 1] and (s.schedule == '' or known[2 * i]) then list[#list + 1], list[#list + 2] = int(s.at), s.kind end
    end
    if #list > 0 then
      tables[aside .. ':' .. id], areKnown = list, true
    end
  end
  for key, list in pairs(tables) do call('ZADD', key, 'LT', unpack(list)) end
  for key, list in pairs(gone) do
    for from = 1, #list, 500 do call('ZREM', key, unpack(list, from, math.min(#list, from + 499))) end
  end
  return areKnown
end
