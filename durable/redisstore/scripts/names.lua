-- storeNames stores a worker's list of names, which no worker has had before. The new worker may
-- have names of kinds that were set aside. A complete list has the empty name: it is written last
-- and deleted first.
local function storeNames(listID, list)
--include aside.lua
  local entries, index, inUse, kept = {}, 0, {}, {}
  for letter, name in string.gmatch(list, '%z(%l)([^%z]+)') do
    entries[#entries + 1], entries[#entries + 2] = letter .. name, letter == 'h' and index or '-'
    index = index + 1
  end
  for from = 1, #entries, 1000 do
    call('HSET', lists .. listID, unpack(entries, from, math.min(#entries, from + 999)))
  end
  call('HSET', lists .. listID, '', '-')
  local all = call('HGETALL', crew)
  for i = 2, #all, 2 do inUse[match(all[i], '%x+$') or ''] = true end
  for id in string.gmatch(call('HGET', meta, 'lists') or '', '%x+') do
    if id == listID then
      -- A crash of the server has left a part of the list.
    elseif inUse[id] then
      kept[#kept + 1] = id
    else
      call('HDEL', lists .. id, '')
      local gone, old = {}, call('HGETALL', lists .. id)
      for i = 1, #old, 2 do gone[#gone + 1] = old[i] end
      for from = 1, #gone, 1000 do call('HDEL', lists .. id, unpack(gone, from, math.min(#gone, from + 999))) end
      bringBack(aside .. ':' .. id)
    end
  end
  kept[#kept + 1] = listID
  call('HSET', meta, 'lists', table.concat(kept, ' '))
  bringBack(aside)
  bringBack(groups .. 'aside')
end
