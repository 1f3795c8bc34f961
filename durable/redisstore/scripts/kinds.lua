-- allKinds returns all kinds, also those that were set aside.
local function allKinds()
  local all, seen = call('ZRANGE', kinds, 0, -1), {}
  for _, kind in ipairs(all) do seen[kind] = true end
  for _, kind in ipairs(call('ZRANGE', aside, 0, -1)) do
    if not seen[kind] then all[#all + 1] = kind end
  end
  return all
end

-- plainKind returns a kind without the mark of suspects or paused tasks.
local function plainKind(kind) return (byte(kind, 1) == 33 or byte(kind, 1) == 126) and sub(kind, 2) or kind end
