-- stats answers with the shard's numbers.
--include clock.lua
--include lib.lua
local late = 0
local head = call('ZRANGE', due, 0, 0, 'WITHSCORES')
if head[2] then late = math.max(0, now - tonumber(head[2])) end
local out = {
  call('ZCARD', due), call('ZCOUNT', due, '-inf', int(now)), call('ZCARD', lease), call('ZCARD', dead), late,
}
local counts = call('HMGET', meta, 'paused', 'claimed', 'done', 'retried', 'died', 'crashed', 'released',
  'refused', 'cancelled', 'unknown')
for _, n in ipairs(counts) do out[#out + 1] = tonumber(n or '0') end
return out
