-- endExpired ends the attempts whose leases have expired. It returns when the next lease ends.
local function endExpired(maxCrashes, limiting)
  local expired = call('ZRANGEBYSCORE', lease, '-inf', int(now), 'LIMIT', 0, 100)
  local crashed, died = 0, 0
  local runs = call('HMGET', run, unpack(expired))
  for i, id in ipairs(expired) do
    local token, attempt, crashes, at, flags, next, kind = parseRun(runs[i])
    if call('HEXISTS', task, id) == 0 then
      -- The task is done or cancelled. A crash of the server has left this entry.
      call('HDEL', run, id)
      call('HDEL', err, id)
      if limiting and token ~= '0' then limiting.remove(runs[i]) end
    elseif call('ZSCORE', due .. queueOf(kind, flags), id) then
      -- A crash of the server has left the task in due and lease. Removing it from lease
      -- makes it pending.
    elseif token == '0' then
      -- The task has no lease. A crash of the server has left this entry.
      local record = call('HGET', task, id)
      if not call('ZSCORE', dead, id) then addPending(id, queueOf(kindOf(record), flags), dueTime(runs[i], record)) end
    else
      crashed = crashed + 1
      if limiting then limiting.remove(runs[i]) end
      local letters, replaced = '', false
      if next ~= '-' then
--include follow.lua
        if continues(id, flags, next) then
          kind, letters = adopt(id, kind, flags, next)
        else
          follow(id, kind, flags, next)
          replaced = true
        end
      end
      if replaced then
        -- The task is no longer the one that crashed.
      elseif next == '-' and hasFlag(flags, 'c') then
        forget(id)
      elseif crashes + 1 >= maxCrashes and not repeats(id, call('HGET', task, id)) then
        bury(id, attempt, crashes + 1, at, 'the worker crashed or lost its lease, as often as is allowed', kind)
--include kept.lua
        followUp(id, call('HGET', task, id), token, false, at, attempt, crashes + 1, 'the worker crashed or lost its lease, as often as is allowed')
        keep(id, call('HGET', task, id), attempt, crashes + 1, at, call('HGET', err, id), false, '')
        died = died + 1
      else
        addFailure(id, attempt, 'the worker crashed or lost its lease')
        local suspect = maxCrashes > 1 and crashes + 1 >= math.min(3, maxCrashes - 1)
        letters = (suspect and 's' or '') .. (hasFlag(flags, 'p') and 'p' or '') .. letters
        call('HSET', run, id, formatRun('0', attempt, crashes + 1, at, letters == '' and '-' or letters, int(now), kind))
        addPending(id, queueOf(kind, letters), int(now))
      end
    end
  end
  call('ZREM', lease, unpack(expired))
  addToCounter('crashed', crashed)
  addToCounter('died', died)
  return tonumber(call('ZRANGE', lease, 0, 0, 'WITHSCORES')[2] or '')
end
