local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function int(n) return string.format('%.0f', tonumber(n)) end
