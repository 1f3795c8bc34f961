-- kindOf returns the kind in a record, or "" if the record is damaged.
local function kindOf(record)
  local a, b = byte(record or '', 18, 19)
  if not b then return '' end
  local kind = sub(record, 20, 19 + a * 256 + b)
  return #kind == a * 256 + b and kind or ''
end
