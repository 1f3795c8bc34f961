-- unindexed returns how many more tasks than index entries there are, and the names of the
-- damaged numbers.
--include damaged.lua
local places = call('ZCARD', lease) + call('ZCARD', dead) + call('ZCARD', past)
--include kinds.lua
for _, kind in ipairs(allKinds()) do places = places + call('ZCARD', due .. kind) end
return {call('HLEN', task) - places, damagedNumbers()}
