-- requeue ID WHEN makes a pending task of a dead letter. It answers with an
-- outcome.
--include lib.lua
local absent, moved = 1, 6
local id, score = ARGV[2], when(ARGV[3])
if call('ZREM', dead, id) == 0 then return absent end
call('HDEL', run, id)
call('HDEL', err, id)
call('ZADD', due, int(score), id)
watch(score)
return moved
