-- everybody returns the workers that are there: what each has named in its latest claim.
-- One that was not heard of for a minute, and for twice as long as it sleeps or its leases
-- last, is gone.
local function everybody()
  local list, names, all = {}, {}, call('HGETALL', crew)
  for i = 1, #all, 2 do names[#names + 1] = all[i] end
  if #names == 0 then return list end
  for from = 1, #names, 1000 do
    for i, last in ipairs(call('HMGET', meta, unpack(names, from, math.min(#names, from + 999)))) do
      local k = from + i - 1
      local length, handlers, rest = string.match(all[2 * k], '^(%d+) (%d+) (.*)$')
      local seen = tonumber(string.match(last or '', '^%d+ (%d+) ') or '0')
      if length and seen > now - math.max(60 * 1000000, 2 * length) then
        local who, at, j = {name = names[k], handlers = {}, schedules = {}}, 1, 0
        while at <= #rest do
          local _, to, size = string.find(rest, '^(%d+):', at)
          j = j + 1
          local list = j <= tonumber(handlers) and who.handlers or who.schedules
          list[string.sub(rest, to + 1, to + size)] = true
          at = to + size + 1
        end
        list[#list + 1] = who
      end
    end
  end
  return list
end

-- knows reports whether a worker can run tasks of a kind.
local function knows(who, kind)
  local a, b, c, d = string.byte(kind, 1, 4)
  local from = 5 + a * 256 + b
  return who.handlers[string.sub(kind, 5, from - 1)] and (c + d == 0 or who.schedules[string.sub(kind, from)] or false)
end
