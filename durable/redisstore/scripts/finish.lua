    -- Reports that are not plain: ids, runs and reports are those of round.lua.
    local digits, held, over = {}, {}, {}
    local done, retried, died, released, refused = 0, 0, 0, 0, 0

    -- buryRun makes a dead letter of a run of a task that repeats. It takes the place
    -- of the one that the task has, so that a task that fails for ever has one.
    local function buryRun(id, attempt, crashes, due_, text)
      local single, runs, failures = id .. '\0', 1, ''
      if call('ZSCORE', dead, single) then
        local _, _, _, _, _, k = parse(call('HGET', run, single))
        runs, failures = (tonumber(k) or 1) + 1, call('HGET', err, single) or ''
      elseif call('HEXISTS', task, single) == 1 then
        single = single .. due_ -- only damage can have put it into another place
      end
      call('HSET', task, single, call('HGET', task, id) or '')
      note(single, attempt, text, failures .. (call('HGET', err, id) or ''))
      call('HSET', run, single, state('0', attempt, crashes, due_, '-', runs))
      call('ZADD', dead, int(now), single)
    end

    -- one returns true if the task was scheduled again, or cancelled, while it ran.
    local function one(op, id, at, due_, text, r)
      local _, attempt, crashes, _, flags, next = parse(r)
      if op == 'd' then
        done = done + 1
      elseif op == 'b' then
        released = released + 1
      end
      if next ~= '-' or has(flags, 'c') then
        if next ~= '-' then follow(id, flags, next) else forget(id) end
        return true
      end
      if op == 'm' then op, attempt = 'x', attempt - 1 end
      local score = at ~= '' and when(at)
      if op == 'd' or op == 'x' then
        if op == 'x' then died = died + 1 end
        if op == 'x' and score then
          buryRun(id, attempt, crashes, due_, text)
        elseif op == 'x' then
          return bury(id, attempt, crashes, due_, text)
        end
        if not score then return forget(id) end
        return wait(id, int(score))
      end
      if op == 'r' then
        retried = retried + 1
        note(id, attempt, text)
        call('HSET', run, id, state('0', attempt, crashes, due_, '-', int(score)))
      else
        call('HSET', run, id, state('0', attempt - 1, crashes, due_, '-', score and int(score) or '-'))
        score = score or tonumber(due_)
      end
      call('ZADD', due, int(score), id)
      watch(score)
    end

    local later = {}
    for i = 1, reports do
      local at = 8 + 6 * i
      local op, id, token, r = ARGV[at], ids[i], ARGV[at + 2], runs[i]
      if not r or string.sub(r, 1, #token + 1) ~= token .. ' ' or token == '0' then
        refused = refused + 1
        digits[i] = '0'
      else
        held[#held + 1] = id
        if op == 'd' and r == token .. ' 1 0 ' .. ARGV[at + 4] .. ' - -' and ARGV[at + 3] == '' then
          over[#over + 1] = id
        else
          later[#later + 1] = i
        end
        digits[i] = '1'
      end
    end
    if #over > 0 then
      call('HDEL', task, unpack(over))
      call('HDEL', run, unpack(over))
      done = done + #over
    end
    for _, i in ipairs(later) do
      local at = 8 + 6 * i
      if one(ARGV[at], ids[i], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], runs[i]) then digits[i] = '2' end
    end
    if #held > 0 then call('ZREM', lease, unpack(held)) end
    count('done', done)
    count('retried', retried)
    count('died', died)
    count('released', released)
    count('refused', refused)
    accepted = 'a' .. table.concat(digits)
