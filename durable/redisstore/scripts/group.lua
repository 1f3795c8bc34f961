-- groupOf returns the name of a kind's group, the handler and the schedule. It returns nil for
-- a kind without a group, and for that of paused tasks. The name of a group is that of the handler, with its length and a
-- colon, a NUL and the group.
local function groupOf(kind)
  if not string.find(kind, '\0', 1, true) or byte(kind, 1) == 126 then return nil end
  if byte(kind, 1) == 33 then kind = sub(kind, 2) end
  local size = match(kind, '^%d+')
  if not size then return nil end
  local to = #size + 1 + size
  local nul = string.find(kind, '\0', to + 1, true)
  if nul then return sub(kind, 1, to) .. sub(kind, nul), sub(kind, 1, to), sub(kind, to + 1, nul - 1) end
end

-- addGroupKind adds a kind with a group to the kinds of groups, unless the group is at its
-- limit. It returns whether it did, and the key of all tasks with this handler and schedule.
local function addGroupKind(kind, score)
  local group, handler, schedule = groupOf(kind)
  local all = '@' .. handler .. schedule
  call('HSETNX', meta, 'groups', 1)
  call('ZADD', groups .. 'all', 0, all)
  if call('ZSCORE', groups .. 'blocked', kind) then
    call('ZADD', aside .. ':=' .. group, 'XX', 'LT', score, kind)
    return false, due .. all
  end
  call('ZADD', groups .. 'kinds', 'LT', score, kind)
  return true, due .. all
end
