-- finishReports handles the reports that round.lua has not handled itself: those without a digit.
-- The reports begin at ARGV[p]. It returns how many tasks are done.
local function finishReports(p, ids, runs, digits)
  -- buryRun makes a failed run of a repeating task a dead letter. It replaces the task's
  -- previous dead letter, so that a task that always fails has only one.
  local function buryRun(id, attempt, crashes, due_, text, kind)
    local single, runs, failures = id .. '\0', 1, ''
    if call('ZSCORE', dead, single) then
      local _, _, _, _, _, k = parseRun(call('HGET', run, single))
      runs, failures = (tonumber(k) or 1) + 1, call('HGET', err, single) or ''
    elseif call('HEXISTS', task, single) == 1 then
      single = single .. due_ -- damage: the dead letter exists, but is not in dead
    end
    call('HSET', task, single, call('HGET', task, id) or '')
    addFailure(single, attempt, text, failures .. (call('HGET', err, id) or ''))
    call('HSET', run, single, formatRun('0', attempt, crashes, due_, '-', runs, kind))
    call('ZADD', dead, int(now), single)
  end

  local finished = 0
--include kept.lua

  -- finish carries out a report, and returns the digit for it.
  local counts = {retried = 0, died = 0, released = 0, refused = 0}
  local function finish(op, id, at, due_, text, r)
    local token, attempt, crashes, _, flags, next, kind = parseRun(r)
    local asks = string.find(op, '%u')
    local keeping = asks and call('HGET', task, id)
    op = string.lower(op)
    local result = ''
    if keeping and op == 'd' then
      keep(id, keeping, attempt, crashes, due_, call('HGET', err, id) or '', true, text)
      if not hasFlag(flags, 'c') then followUp(id, keeping, token, true, due_, attempt, crashes, '') end
    elseif asks and (op == 'x' or op == 'm') then
      local size, both = match(text, '^(%d+):(.*)$')
      text, result = sub(both, 1, tonumber(size)), sub(both, size + 1)
    end
    if op == 'd' then finished = finished + 1 end
    if op == 'b' then counts.released = counts.released + 1 end
    local later, letters = false, '' -- whether the task is due at next after its run
    if next ~= '-' then
--include follow.lua
      if not continues(id, flags, next) then
        follow(id, kind, flags, next)
        return '2'
      end
      later = next ~= '0'
      if not later or op == 'r' or op == 'b' then
        kind, letters = adopt(id, kind, flags, next)
      elseif op == 'd' then
        follow(id, kind, flags, next)
        return '2'
      end
    elseif hasFlag(flags, 'c') then
      forget(id)
      return '2'
    end
    if op == 'm' then op, attempt = 'x', attempt - 1 end
    local score = at ~= '' and int(when(at))
    if op == 'd' or op == 'x' then
      if op == 'x' then
        counts.died = counts.died + 1
        if keeping then
          keep(id, keeping, attempt, crashes, due_, withFailure(call('HGET', err, id) or '', attempt, text), false, result)
          followUp(id, keeping, token, false, due_, attempt, crashes, text)
        end
        if score or later then
          buryRun(id, attempt, crashes, due_, text, kind)
        else
          bury(id, attempt, crashes, due_, text, kind)
        end
      elseif not score then
        forget(id)
      end
      if later then
        follow(id, kind, flags, next)
      elseif score then
        makePending(id, kind, score, flags)
      end
    elseif op == 'r' then
      counts.retried = counts.retried + 1
      addFailure(id, attempt, text)
      call('HSET', run, id, formatRun('0', attempt, crashes, due_, flagsOf(letters, flags), score, kind))
      addPending(id, queueOf(kind, flags), score)
    else
      if text ~= '' then call('HSET', err, id, withFailure(call('HGET', err, id) or '', attempt, text, true)) end
      call('HSET', run, id, formatRun('0', attempt - 1, crashes, due_, flagsOf(letters, flags), score or '-', kind))
      addPending(id, queueOf(kind, flags), score or due_)
    end
    return '1'
  end

  local held = {}
  for i, id in ipairs(ids) do
    local at, r = p + 6 * i - 6, runs[i]
    local token = ARGV[at + 2] .. ' '
    if digits[i] then
      -- round.lua has handled this report.
    elseif not r or token == '0 ' or sub(r, 1, #token) ~= token then
      counts.refused, digits[i] = counts.refused + 1, '0'
    else
      held[#held + 1], digits[i] = id, finish(ARGV[at], id, ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], r)
    end
  end
  if #held > 0 then call('ZREM', lease, unpack(held)) end
  for what, k in pairs(counts) do addToCounter(what, k) end
  return finished
end
