-- unindexed returns how many more tasks than index entries there are.
local places = call('ZCARD', lease) + call('ZCARD', dead) + call('ZCARD', past)
for _, kind in ipairs(call('ZRANGE', kinds, 0, -1)) do places = places + call('ZCARD', due .. kind) end
return call('HLEN', task) - places
