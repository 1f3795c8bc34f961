-- requeue ID WHEN makes a pending task of a dead letter. It answers with an
-- outcome. One of a repeating task gets an id of its own, so that the next of its
-- runs that dies finds the place free.
--include lib.lua
local absent, moved = 1, 6
local id, score = ARGV[2], when(ARGV[3])
if call('ZREM', dead, id) == 0 then return absent end
if string.byte(id, -1) == 0 then
  local _, _, _, at = parse(call('HGET', run, id))
  local single = id .. at
  if call('HEXISTS', task, single) == 1 then single = id .. int(now) end
  call('HSET', task, single, call('HGET', task, id))
  call('ZADD', due, int(score), single)
  forget(id)
  watch(score)
  return moved
end
call('HDEL', run, id)
call('HDEL', err, id)
call('ZADD', due, int(score), id)
watch(score)
return moved
