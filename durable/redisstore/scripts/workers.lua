-- workers returns the workers that have not left. For each it returns its entry of crew, when
-- its latest round came, its description, and how many names its list has, followed by these
-- names as in the hash names:ID.
local out, all = {}, call('HGETALL', crew)
for i = 1, #all, 2 do
  local last, about = unpack(call('HMGET', meta, all[i], 'w:' .. all[i]))
  local id = match(all[i + 1], '%x+$')
  local names = id and call('HKEYS', lists .. id) or {}
  local k = #out
  out[k + 1], out[k + 2], out[k + 3], out[k + 4] = all[i + 1], match(last or '', '^%d+ (%d+) ') or '0', about or '', #names
  for j = 1, #names do out[k + 4 + j] = names[j] end
end
return out
