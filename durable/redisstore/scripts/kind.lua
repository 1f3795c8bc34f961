-- kindOf returns the kind in a record, or "" if the record is damaged.
local function kindOf(record)
  local a, b = byte(record or '', 18, 19)
  if not b then return '' end
  local kind = sub(record, 20, 19 + a * 256 + b)
  return #kind == a * 256 + b and kind or ''
end

-- hasFields reports whether a record has bytes of package durable of a known version, which
-- begin with the version 1 or 2.
local function hasFields(record, kind)
  local version = byte(record, 20 + #kind)
  return version == 1 or version == 2
end

-- content returns a record without its version.
local function content(record)
  if byte(record or '', 17) == 53 then return sub(record, 1, -17) end -- the digit 5
  return record
end

-- endOf returns when a finished run ended, or nil for any other id.
local function endOf(id, record)
  if not string.find(id, '\0r', 1, true) then return nil end
  return match(sub(record or '', 20 + #kindOf(record)), '^[dx](' .. string.rep('%d', 16) .. ')')
end
