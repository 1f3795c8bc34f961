    -- Leases that have run out: ending is that of the first.
    local expired = call('ZRANGEBYSCORE', lease, '-inf', int(now), 'LIMIT', 0, 100)
    ending = tonumber(call('ZRANGE', lease, #expired, #expired, 'WITHSCORES')[2] or '')
    local runs = call('HMGET', run, unpack(expired))
    local crashed, died = 0, 0
    for i, id in ipairs(expired) do
      local token, attempt, crashes, at, flags, next = parse(runs[i])
      if call('HEXISTS', task, id) == 0 then
        -- Done, or cancelled, but for this entry: what a crash has left.
        call('HDEL', run, id)
        call('HDEL', err, id)
      elseif call('ZSCORE', due, id) then
        -- It was not taken out of due when it got its lease: a crash. Now it is here
        -- alone, and waits for its time.
      elseif token == '0' then
        -- It has ended, but for this entry.
        if not call('ZSCORE', dead, id) and not call('ZSCORE', aside, id) then
          call('ZADD', due, place(runs[i], call('HGET', task, id)), id)
        end
      else
        crashed = crashed + 1
        if next ~= '-' then
          follow(id, flags, next)
        elseif has(flags, 'c') then
          forget(id)
        elseif crashes + 1 >= most and not repeats(id, call('HGET', task, id)) then
          bury(id, attempt, crashes + 1, at, 'the worker crashed or lost its lease, as often as is allowed')
          died = died + 1
        else
          note(id, attempt, 'the worker crashed or lost its lease')
          call('HSET', run, id, state('0', attempt, crashes + 1, at, '-', int(now)))
          call('ZADD', due, int(now), id)
        end
      end
    end
    call('ZREM', lease, unpack(expired))
    count('crashed', crashed)
    count('died', died)
