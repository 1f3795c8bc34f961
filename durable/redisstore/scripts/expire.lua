-- Handle expired leases. Afterwards ends is when the next lease ends.
local expired = call('ZRANGEBYSCORE', lease, '-inf', int(now), 'LIMIT', 0, 100)
local crashed, died = 0, 0
local runs = call('HMGET', run, unpack(expired))
for i, id in ipairs(expired) do
  local token, attempt, crashes, at, flags, next, kind = parse(runs[i])
  if call('HEXISTS', task, id) == 0 then
    -- The task is done or cancelled. A crash of the server has left this entry.
    call('HDEL', run, id)
    call('HDEL', err, id)
    if limited and token ~= '0' then release(runs[i]) end
  elseif call('ZSCORE', due .. kind, id) then
    -- A crash of the server has left the task in due and lease. Removing it from lease
    -- makes it pending.
  elseif token == '0' then
    -- The task has no lease. A crash of the server has left this entry.
    local record = call('HGET', task, id)
    if not call('ZSCORE', dead, id) then enter(id, kindOf(record), place(runs[i], record)) end
  else
    crashed = crashed + 1
    if limited then release(runs[i]) end
    if next ~= '-' then
      follow(id, kind, flags, next)
    elseif has(flags, 'c') then
      forget(id)
    elseif crashes + 1 >= most and most > 1 and not has(flags, 'a') then
      -- Count the last allowed crash only if the task ran alone: another task may have
      -- caused the crash.
      note(id, attempt, 'the worker crashed or lost its lease')
      call('HSET', run, id, state('0', attempt, crashes, at, '-', int(now), kind))
      enter(id, kind, int(now))
    elseif crashes + 1 >= most and not repeats(id, call('HGET', task, id)) then
      bury(id, attempt, crashes + 1, at, 'the worker crashed or lost its lease, as often as is allowed', kind)
--include kept.lua
      keep(id, call('HGET', task, id), attempt, crashes + 1, at, call('HGET', err, id), false, '')
      died = died + 1
    else
      note(id, attempt, 'the worker crashed or lost its lease')
      call('HSET', run, id, state('0', attempt, crashes + 1, at, '-', int(now), kind))
      enter(id, kind, int(now))
    end
  end
end
call('ZREM', lease, unpack(expired))
count('crashed', crashed)
count('died', died)
ends = tonumber(call('ZRANGE', lease, 0, 0, 'WITHSCORES')[2] or '')
