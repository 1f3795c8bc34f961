-- astray returns how many more tasks there are than index entries.
local places = call('ZCARD', lease) + call('ZCARD', dead) + call('ZCARD', past)
for _, kind in ipairs(call('ZRANGE', kinds, 0, -1)) do places = places + call('ZCARD', due .. kind) end
return call('HLEN', task) - places
