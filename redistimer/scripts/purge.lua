-- purge ID deletes a dead letter. It answers with an outcome.
--include lib.lua
local absent, removed = 1, 7
if call('ZREM', dead, ARGV[2]) == 0 then return absent end
forget(ARGV[2])
return removed
