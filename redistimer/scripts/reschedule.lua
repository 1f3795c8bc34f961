-- reschedule ID WHEN answers with an outcome.
--include lib.lua
local absent, following, moved = 1, 5, 6
local id, score = ARGV[2], when(ARGV[3])
local r = call('HGET', run, id)
if call('ZSCORE', due, id) then
  call('ZADD', due, int(score), id)
  local _, attempt, crashes = parse(r)
  -- What was handed back untried is due then, and was not due before.
  if r and attempt == 0 and crashes == 0 then
    call('HDEL', run, id)
    call('HDEL', err, id)
  end
  watch(score)
  return moved
end
if not r then return absent end
local token, attempt, crashes, at, flags = parse(r)
if token == '0' then return absent end
call('HSET', run, id, state(token, attempt, crashes, at, flags, int(score)))
return following
