-- allKinds returns all kinds without a group, also those that were set aside, and an at sign
-- with the handler and the schedule of those that have one. due: with each has all pending
-- tasks.
local function allKinds()
  local all, seen = call('ZRANGE', kinds, 0, -1), {}
  for _, kind in ipairs(all) do seen[kind] = true end
  for _, kind in ipairs(call('ZRANGE', aside, 0, -1)) do
    if not seen[kind] then all[#all + 1] = kind end
  end
  for _, kind in ipairs(call('ZRANGE', groups .. 'all', 0, -1)) do all[#all + 1] = kind end
  return all
end

-- plainKind returns a kind without the mark of suspects or paused tasks, or the at sign.
local function plainKind(kind)
  local mark = byte(kind, 1)
  return (mark == 33 or mark == 64 or mark == 126) and sub(kind, 2) or kind
end
