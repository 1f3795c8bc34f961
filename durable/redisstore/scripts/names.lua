-- Store the worker's list of names, which no worker has had before. The new worker may have
-- names of kinds that were set aside.
--include aside.lua
local entries, index, inUse, kept = {}, 0, {}, {}
for letter, name in string.gmatch(list, '%z(%l)([^%z]+)') do
  entries[#entries + 1], entries[#entries + 2] = letter .. name, letter == 'h' and index or '-'
  index = index + 1
end
for from = 1, #entries, 1000 do
  call('HSET', lists .. listID, unpack(entries, from, math.min(#entries, from + 999)))
end
if #entries == 0 then call('HSET', lists .. listID, '', '-') end
for _, names in ipairs(call('HVALS', crew)) do inUse[match(names, '%x+$') or ''] = true end
for id in string.gmatch(call('HGET', meta, 'lists') or '', '%x+') do
  if inUse[id] then
    kept[#kept + 1] = id
  else
    call('DEL', lists .. id, aside .. ':' .. id)
  end
end
kept[#kept + 1] = listID
call('HSET', meta, 'lists', table.concat(kept, ' '))
bringBack(aside)
