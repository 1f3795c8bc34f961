-- repair NAME KIND CURSOR N checks and corrects about N entries of the Redis key NAME, which
-- is due:KIND if NAME is due. It returns
--
--   cursor looked requeued doubled orphaned kinds
--
-- cursor is the next cursor, or 0 at the end. looked is how many entries it has checked. The
-- next three say how many tasks it has put back into an index, how many it has removed from
-- a second index, and how many entries without a task it has removed. kinds has the kinds if
-- NAME is kinds.
--include lib.lua
--include damaged.lua
local name, kind, cursor, n = ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3]
local looked, requeued, doubled, orphaned, names = 0, 0, 0, 0, {}

local keys = {due = due .. kind, kinds = kinds, groupKinds = groups .. 'kinds', allGroups = groups .. 'all', lease = lease, dead = dead, past = past, ended = ended, task = task, follows = follows, run = run, err = err}
local scan = (name == 'due' or name == 'kinds' or name == 'groupKinds' or name == 'allGroups' or name == 'lease' or name == 'dead' or name == 'past' or name == 'ended') and 'ZSCAN' or 'HSCAN'
--include aside.lua
if name == 'kinds' and cursor == '0' then
  bringBack(aside)
  names = call('ZRANGE', aside, 0, -1) -- of paused tasks
end
if name == 'groupKinds' and cursor == '0' then
  bringBack(groups .. 'aside')
  for _, kind in ipairs(call('ZRANGE', groups .. 'blocked', 0, -1)) do
    call('ZADD', groups .. 'kinds', 'NX', int(now), kind)
    unblock(groupOf(kind))
    call('ZREM', groups .. 'blocked', kind)
  end
end
local page = call(scan, keys[name], cursor, 'COUNT', n)

-- settle corrects a task so that it has exactly one ZSET entry.
local function settle(id, record)
  local kind, r = kindOf(record), call('HGET', run, id)
  local token, attempt, crashes, at, flags, next, was = parseRun(r)
  local queue = queueOf(kind, flags)
  local d, l, x = call('ZSCORE', due .. queue, id), call('ZSCORE', lease, id), call('ZSCORE', dead, id)
  if not x and call('ZSCORE', past, id) then
    local at = endOf(id, record)
    if at then call('ZADD', ended, at, id) end
    return
  end
  local held = token ~= '0'
  if l and not held then
    call('ZREM', lease, id)
    l = nil
    if d or x then doubled = doubled + 1 end
  end
  if l then
    if d then call('ZREM', due .. queue, id) end
    if x then call('ZREM', dead, id) end
    if d or x then doubled = doubled + 1 end
  end
  if held and not l then
    -- Remove the token, because another worker may claim the task. The worker with this
    -- token must then not finish the task.
    local later = (tonumber(next) or 0) > 0 and 'f' .. next .. (hasFlag(flags, 'n') and 'n' or '') or ''
    r = formatRun('0', attempt, crashes, at, flagsOf(later, flags), '-', kind)
    call('HSET', run, id, r)
  elseif r and was ~= kind then
    r = formatRun(token, attempt, crashes, at, flags, next, kind)
    call('HSET', run, id, r)
  end
  if l then return end
  if d and x then
    call('ZREM', dead, id)
    doubled = doubled + 1
  end
  local _, handler, schedule = groupOf(queue)
  local places = handler and {groups .. 'kinds', groups .. 'aside', groups .. 'blocked'} or {kinds, aside}
  local placed = false
  for _, place in ipairs(places) do placed = placed or call('ZSCORE', place, queue) end
  if d and not placed then
    -- Without this entry in kinds no claim finds the task.
    call('ZADD', byte(queue, 1) == 126 and aside or places[1], int(d), queue)
    requeued = requeued + 1
  end
  if d and handler then
    call('ZADD', groups .. 'all', 0, '@' .. handler .. schedule)
    call('ZADD', due .. '@' .. handler .. schedule, int(d), id)
  end
  if not d and not x then
    requeued = requeued + 1
    if sub(id, -1) == '\0' then
      -- This is the dead letter of a repeating task. It must not become pending: its run
      -- has a number of runs instead of a time.
      r = r or formatRun('0', 0, 0, dueTime(r, record), '-', 1, kind)
      call('HSET', run, id, r)
      call('ZADD', dead, int(now), id)
    else
      addPending(id, queue, dueTime(r, record))
    end
  end
  if x and not d and not r then
    call('HSET', run, id, formatRun('0', 0, 0, int(x), '-', '-', kind))
  end
end

if name == 'run' and cursor == '0' then orphaned = #damagedNumbers(true) end

-- Correct the number of running tasks of each limit. By now lease has no entries without
-- a task.
if name == 'run' and cursor == '0' and call('HLEN', limits) > 0 then
--include count.lua
  local counts, all = countRunning(), call('HGETALL', limits)
  for i = 1, #all, 2 do
    local head, running, rest = match(all[i + 1], '^(%d+ %d+ %d+ )(%d+)( .*)$')
    local counted = counts[all[i]] or 0
    if head and tonumber(running) ~= counted then
      call('HSET', limits, all[i], head .. counted .. rest)
      bringBack(aside .. ':=' .. all[i])
    end
  end
  local states = call('HGETALL', groups .. 'state')
  for i = 1, #states, 2 do counts[states[i]] = counts[states[i]] or 0 end
  for group, counted in pairs(counts) do
    local _, handler = groupOf(group)
    local ofGroup = handler and match(call('HGET', limits, handler) or '', '^%d+ %d+ %d+ %d+ %d+ %d %S+ .')
    local running, full = match(ofGroup and call('HGET', groups .. 'state', group) or '', '^(%d+) (%d+)$')
    if ofGroup and tonumber(running or '0') ~= counted then
      call('HSET', groups .. 'state', group, counted .. ' ' .. (full or '0'))
      call('ZADD', groups .. 'idle', full or '0', group)
      unblock(group)
    end
  end
end

for i = 1, #page[2], 2 do
  local id, value = page[2][i], page[2][i + 1]
  looked = looked + 1
  local orphan = false
  if name == 'task' then
    settle(id, value)
  elseif name == 'kinds' or name == 'groupKinds' or name == 'allGroups' then
    -- The kind's time in kinds must be that of its first task.
    names[#names + 1] = id
    local head = call('ZRANGE', due .. id, 0, 0, 'WITHSCORES')[2]
    if not head then
      call('ZREM', keys[name], id)
    elseif name ~= 'allGroups' then
      call('ZADD', keys[name], int(head), id)
    end
  elseif name == 'due' then
    local record = call('HGET', task, id)
    local _, _, _, _, flags = parseRun(call('HGET', run, id))
    local queue = queueOf(kindOf(record), flags)
    orphan = not record or queue ~= kind
    if byte(kind, 1) == 64 then -- an at sign
      local _, handler, schedule = groupOf(queue)
      orphan = not record or kind ~= '@' .. (handler or '') .. (schedule or '') or not call('ZSCORE', due .. queue, id)
    end
  elseif name == 'follows' then
    local _, _, _, _, flags = parseRun(call('HGET', run, id))
    orphan = call('HEXISTS', task, id) == 0 or not hasFlag(flags, 'n')
  else
    orphan = call('HEXISTS', task, id) == 0
  end
  if orphan then
    orphaned = orphaned + 1
    call(scan == 'ZSCAN' and 'ZREM' or 'HDEL', keys[name], id)
  end
end
return {page[1], looked, requeued, doubled, orphaned, names}
