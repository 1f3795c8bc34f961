-- purge ID deletes a dead letter. It answers with an outcome.
--include once.lua
--include clock.lua
--include lib.lua
permit()
sweep()
local absent, removed = '1', '7'
if not call('ZSCORE', dead, ARGV[5]) then return remember(absent) end
forget(ARGV[5])
call('ZREM', dead, ARGV[5])
return remember(removed)
