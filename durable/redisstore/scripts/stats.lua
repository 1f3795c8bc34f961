-- stats returns the shard's counts. A task is unknown if no running worker has named its
-- handler, or its schedule, in the worker's latest claim. A worker counts as running until
-- it was silent for a minute, and for twice the longest time between two of its rounds.
local there, all, workers = {}, call('HGETALL', crew), {}
for i = 1, #all, 2 do workers[#workers + 1] = all[i] end
for from = 1, #workers, 1000 do
  for i, last in ipairs(call('HMGET', meta, unpack(workers, from, math.min(#workers, from + 999)))) do
    local names = all[2 * (from + i - 1)]
    local seen = tonumber(match(last or '', '^%d+ (%d+) ') or '0')
    if seen > now - math.max(60 * 1000000, 2 * (match(names, '^%d+') or 0)) then there[names] = true end
  end
end
local known, read = {}, {}
for names in pairs(there) do
  local id = match(names, '%x+$')
  if id and not read[id] then
    read[id] = true
    local names = call('HGETALL', lists .. id)
    for i = 1, #names, 2 do known[names[i]] = true end
  end
end
--include kinds.lua
local function nobody(kind)
  kind = plainKind(kind)
  local size = match(kind, '^%d+')
  if not size then return false end
  local to = #size + 1 + size
  return not known['h' .. sub(kind, 1, to)] or #kind > to and not known['s' .. (#kind - to) .. ':' .. sub(kind, to + 1)]
end

local pending, overdue, unknown, late = 0, 0, 0, 0
for _, kind in ipairs(allKinds()) do
  local key = due .. kind
  pending = pending + call('ZCARD', key)
  local some = byte(kind, 1) == 126 and 0 or call('ZCOUNT', key, '-inf', int(now)) -- without paused tasks
  if some > 0 then
    overdue = overdue + some
    late = math.max(late, now - tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]))
    if nobody(kind) then unknown = unknown + some end
  end
end
-- After late comes the number of tasks in no index. The limits and the paused handlers come
-- last: see limits.lua.
local running, buried, kept = call('ZCARD', lease), call('ZCARD', dead), call('ZCARD', past)
local expired = call('ZCOUNT', past, '-inf', int(now))
local out = {pending, overdue, running, buried, unknown, late, call('HLEN', task) - pending - running - buried - kept, kept - expired}
for i = 3, 2 + ARGV[2] do out[#out + 1] = tonumber(saved[ARGV[i]] or '0') or 0 end
out[#out + 1] = call('HGETALL', limits)
out[#out + 1] = call('HGETALL', stopped)
return out
