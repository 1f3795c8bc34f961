-- requeue ID WHEN makes a pending task of a dead letter. It answers with an
-- outcome. One of a repeating task gets an id of its own, so that the next of its
-- runs that dies finds the place free.
--include once.lua
--include clock.lua
--include lib.lua
permit()
sweep()
local absent, moved = '1', '6'
local id, score = ARGV[5], when(ARGV[6])
if not call('ZSCORE', dead, id) then return remember(absent) end
if string.byte(id, -1) == 0 then
  local _, _, _, at = parse(call('HGET', run, id))
  local single = id .. at
  if call('HEXISTS', task, single) == 1 then single = id .. int(now) end
  call('HSET', task, single, call('HGET', task, id) or '')
  wait(single, int(score))
  forget(id)
else
  wait(id, int(score))
end
call('ZREM', dead, id)
return remember(moved)
