-- damagedNumbers returns the names of the shard's numbers that are damaged: fields of meta,
-- and "limit" with a handler. With mend it corrects them. The latest token can be computed.
-- Other counters begin again, and such a limit must be set again.
local function damagedNumbers(mend)
  local names = {}
  for _, name in ipairs({'armed', 'called', 'fence', 'claimed', 'done', 'retried', 'died', 'crashed', 'released', 'refused', 'cancelled'}) do
    local value = call('HGET', meta, name)
    if value and not match(value, '^%d+$') then
      names[#names + 1] = name
      if mend then call('HDEL', meta, name) end
      if mend and name == 'fence' then call('HSET', meta, name, int(now)) end
    end
  end
  local all = call('HGETALL', limits)
  for i = 1, #all, 2 do
    local rest = match(all[i + 1], '^%d+ %d+ %d+ %d+ %d+ %d %S+(.*)$')
    if not rest or rest ~= '' and not match(rest, '^ %d+ %d+ %d+ %S+$') then
      names[#names + 1] = 'limit ' .. all[i]
      if mend then call('HDEL', limits, all[i]) end
    end
  end
  return names
end
