-- reschedule ID WHEN answers with an outcome.
--include once.lua
--include clock.lua
--include lib.lua
permit()
sweep()
local absent, following, moved = '1', '5', '6'
local id, score = ARGV[5], when(ARGV[6])
local r = call('HGET', run, id)
local token, attempt, crashes, at, flags = parse(r)
if call('ZSCORE', due, id) then
  if r and (attempt > 0 or crashes > 0) then
    call('HSET', run, id, state('0', attempt, crashes, at, '-', int(score)))
  else
    -- What has not been tried is due then, and was not due before.
    call('HSET', run, id, state('0', 0, 0, int(score), '-', '-'))
  end
  call('ZADD', due, int(score), id)
  watch(score)
  return remember(moved)
end
if token == '0' then return remember(absent) end
call('HSET', run, id, state(token, attempt, crashes, at, flags, int(score)))
return remember(following)
