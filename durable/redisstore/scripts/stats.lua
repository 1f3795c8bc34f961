-- stats answers with the shard's numbers.
--include clock.lua
--include crew.lua
local aged = call('ZCARD', aside)
local overdue, late = call('ZCOUNT', due, '-inf', int(now)), 0
for _, key in ipairs({due, aside}) do
  local head = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if head[2] then late = math.max(late, now - tonumber(head[2])) end
end

-- What nobody knows: of what was put aside all, by kinds, of the rest, which the next
-- claim looks at, the first.
local unknown, workers = 0, everybody()
local function nobody(kind)
  for _, who in ipairs(workers) do
    if knows(who, kind) then return false end
  end
  return true
end
local put, steps = aged > 0 and call('ZRANGEBYLEX', kinds, '-', '+', 'LIMIT', 0, 1)[1], 0
while put and steps < 1000 do
  steps = steps + 1
  local a, b, c, d = string.byte(put, 1, 4)
  local kind = string.sub(put, 1, 4 + a * 256 + b + c * 256 + d)
  if nobody(kind) then unknown = unknown + call('ZLEXCOUNT', kinds, '[' .. kind, '(' .. kind .. ':') end
  put = call('ZRANGEBYLEX', kinds, '(' .. kind .. ':', '+', 'LIMIT', 0, 1)[1]
end
if #workers == 0 then
  unknown = unknown + overdue
else
  for _, id in ipairs(call('ZRANGEBYSCORE', due, '-inf', int(now), 'LIMIT', 0, 100)) do
    local record = call('HGET', task, id) or ''
    local a, b, c, d = string.byte(record, 18, 21)
    if d and nobody(string.sub(record, 18, 21 + a * 256 + b + c * 256 + d)) then unknown = unknown + 1 end
  end
end

local out = {call('ZCARD', due) + aged, overdue + aged, call('ZCARD', lease), call('ZCARD', dead), unknown, late}
for _, n in ipairs(call('HMGET', meta, 'paused', 'claimed', 'done', 'retried', 'died', 'crashed', 'released',
  'refused', 'cancelled')) do
  out[#out + 1] = tonumber(n or '0')
end
return out
