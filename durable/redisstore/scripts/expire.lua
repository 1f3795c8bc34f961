-- Take back expired leases. ends becomes the time when the first other lease ends.
local expired = call('ZRANGEBYSCORE', lease, '-inf', int(now), 'LIMIT', 0, 100)
local crashed, died = 0, 0
local runs = call('HMGET', run, unpack(expired))
for i, id in ipairs(expired) do
  local token, attempt, crashes, at, flags, next, kind = parse(runs[i])
  if call('HEXISTS', task, id) == 0 then
    -- A crash has left this entry of a task that is done or cancelled.
    call('HDEL', run, id)
    call('HDEL', err, id)
    if limited and token ~= '0' then release(runs[i]) end
  elseif call('ZSCORE', due .. kind, id) then
    -- After a crash a task may be in due and lease. It is now in lease only, and pending.
  elseif token == '0' then
    -- The lease has ended, and a crash has left this entry.
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
      -- The last allowed crash counts only if the task ran alone.
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
