-- round NUMBER UNTIL LEASE CRASHES LEAVE REPORTS EXTENDS N FULL NAMES ROOMS SUSPECTS PASS
-- ONLY SPARE LIST WORKER ABOUT ... carries out a worker's round: its reports, its extensions and, if N is not empty,
-- a claim of at most N tasks. The arguments are
--
--   NUMBER     the number of the round
--   UNTIL      the time after which the round must not be carried out, or empty
--   LEASE      the duration of leases in microseconds
--   CRASHES    the number of crashes after which a task becomes a dead letter, unless it repeats
--   LEAVE      1 if this is the worker's last round
--   FULL       1 if the worker cannot run more than N tasks: if more tasks are due, the script
--              wakes other workers, because this worker would not claim again at once
--   NAMES      the longest time in microseconds between two rounds of the worker, its number,
--              and the id of its list of names, with spaces between them
--   ROOMS      " I:MOST:BUSY" for some handlers: the handler's number in the list of names, the
--              maximum number of its tasks, and 1 if it gets no SPARE tasks
--   SUSPECTS   the maximum number of suspects in the claim
--   PASS       not empty if the script wakes another worker for tasks that exceed ROOMS: w, or p
--              and the number of workers that have passed on this wake-up, now included. Each
--              worker does so once, because the one that has waited longest pops it.
--   ONLY       1 if the claim may get, as its only suspect, one whose next crash makes it a
--              dead letter
--   SPARE      how many of the N tasks come last, for handlers that have no other task
--   LIST       the list of names: "\0hLENGTH:NAME" for each handler and "\0sLENGTH:NAME" for
--              each schedule. It is empty if the shard has probably got it before. If it has
--              not, the answer is the error "TICKLESS names", and nothing was done.
--   WORKER     the worker's number, or 0 for none
--   ABOUT      the worker's description, if LIST is not empty
--
-- followed by OP ID TOKEN WHEN DUE TEXT for each report, and ID TOKEN for each extension.
--
-- The ops of reports are
--
--   d  done. If WHEN is not empty, the task repeats and is due then.
--   r  failed; the next attempt is due at WHEN. TEXT is the error.
--   x  failed for good. If WHEN is not empty, the task repeats and is due then. All its failed
--      runs share one dead letter, with an id of its own.
--   m  like x, but the handler was not called: the attempt does not count.
--   D, X and M are d, x and m of a task that asks for something at the end of a run: see
--      kept.lua. TEXT of D is the result to keep. TEXT of X and M is the length of the error, a
--      colon, the error and the result.
--   b  handed back: the attempt does not count. If WHEN is not empty, the task is due then.
--
-- DUE is when the run was due. If the worker has skipped missed runs, DUE is later than in the
-- claim.
--
-- The answer is
--
--   now accepted leases own wait lease base ids scores records runs paused limited waiting
--   halted
--
--   accepted  an a and a digit for each report:
--               1  it was accepted
--               0  the lease with this token is no longer valid; nothing was changed
--               2  the task was scheduled again or cancelled meanwhile; this took effect instead
--   leases    an l and a digit for each extension:
--               1  the lease was extended
--               0  the lease is no longer valid
--               2  the lease was extended, and the task was cancelled
--   own       1 if this worker is now the owner
--   wait      the time until the next task is due, or -1
--   lease     the time until the next lease ends, or until a claim should delete expired
--             entries, or -1
--   base      the token of the first claimed task. The second task has base + 1, and so on.
--   ids       the claimed tasks. An id without a record is not a task.
--   scores    when these tasks were due
--   records   the records of these tasks
--   runs      the runs of these tasks before the claim
--   paused    1 if the shard is paused
--   limited   1 if a task waits for a limit until another task ends
--   waiting   which suspect waits: see WaitingSuspects of package store
--   halted    the handlers that are paused
--
-- If the same NUMBER comes again, the script repeats its answers for reports and extensions.
-- It returns the claimed tasks again if their leases are still valid.
--
-- The owner is the worker whose timer is set for the shard's first due task. The field armed
-- of meta has the time of this timer. A command that makes a task due earlier adds members
-- to wake. The worker that pops the first member claims and becomes the owner. Every other
-- worker claims a little after the task is due; if the owner has not claimed, this worker
-- becomes the owner.
--
-- A due kind that the worker lacks is set aside: it moves from kinds to a ZSET for each list
-- of names that has the kind, and to the ZSET aside, which has all such kinds. So it costs this
-- worker's later claims nothing. Workers with such a list are woken. A kind whose handler is at
-- its limit is set aside until a running task of the handler ends, and a kind whose handler is
-- paused until it is not.
--
-- All this only affects speed: any worker may claim at any time.
local sender, number, ending, leaseTime, maxCrashes = ARGV[3], ARGV[first], tonumber(ARGV[first + 1]), ARGV[first + 2], tonumber(ARGV[first + 3])
local reports, extends, n = tonumber(ARGV[first + 5]), tonumber(ARGV[first + 6]), tonumber(ARGV[first + 7])
local full, names, pass, list = ARGV[first + 8] == '1', ARGV[first + 9], ARGV[first + 12], ARGV[first + 15]
local workerFlag = ARGV[first + 16] == '0' and '-' or 'w' .. ARGV[first + 16] -- the flags of a task that the worker runs
local last, fence, paused, owner = saved[sender], tonumber(saved.fence or '0') or 0, saved.paused, saved.owner
claims = n and n > 0 and not paused
local maxOwnerDelay = 100000 -- microseconds; another worker replaces an owner that claims later
local wakeOthers, wakeAll = false, false -- whether to wake another worker, and all of them

local lastNumber, lastAnswer
if last then
  lastNumber, lastAnswer = match(last, '^(%d+) %d+ (.*)$')
  if #number < #lastNumber or #number == #lastNumber and number < lastNumber then return redis.error_reply('TICKLESS stale') end
end
local again = lastNumber == number
if not again and ending and now > ending then
  -- The round stays late if the clock is set back. A full server may refuse the write.
  redis.pcall('HSET', meta, sender, number .. ' ' .. int(now) .. ' late')
  lastAnswer = 'late'
end
if lastAnswer == 'late' and (again or ending and now > ending) then return redis.error_reply('TICKLESS late') end
local isNew = n and not again and call('HGET', crew, sender) ~= names
if isNew and list == '' then return redis.error_reply('TICKLESS names') end
call('HDEL', run, '') -- as allowWrites in lib.lua

local accepted, leases, claimedIDs = 'a', 'l', ''
local answer = {own = 1, wait = -1, lease = -1, base = 0, ids = {}, scores = {}, records = {}, runs = {}}
local claim = {
  n = n, listID = match(names, '%x+$'), rooms = ARGV[first + 10], suspects = tonumber(ARGV[first + 11]), only = ARGV[first + 13] == '1',
  spare = tonumber(ARGV[first + 14]), maxCrashes = maxCrashes,
  ids = {}, times = {}, froms = {}, sources = {}, strange = {}, halted = {}, limited = 0, waiting = 0, pausedHandlers = '',
}
local deadline = int(now + leaseTime)
local fields = {sender, ''} -- the end of the script writes these into meta
local function set(field, value)
  local k = #fields
  fields[k + 1], fields[k + 2] = field, value
end
-- addTo adds n to a counter, unless it is damaged: then only Repair changes it.
local function addTo(counter, old, n)
  old = tonumber(old or '0')
  if old then set(counter, int(old + n)) end
end

--include kind.lua
local groupsOf -- groupOf, or nil without groups
if saved.groups then
--include group.lua
  groupsOf = groupOf
end
local limiting -- nil without limits
if saved.limits then
--include limits.lua
  limiting = loadLimits()
end

if again then
  -- The previous answer was lost. meta has the ids of the claimed tasks.
  accepted, leases, answer.base, claimedIDs = match(lastAnswer, '^(%S+) (%S+) (%d+) (.*)$')
  if not accepted then return redis.error_reply('TICKLESS stale') end
  answer.base = tonumber(answer.base)
  local ids, at = {}, 1
  while at <= #claimedIDs do
    local _, to, size = string.find(claimedIDs, '^(%d+):', at)
    ids[#ids + 1] = sub(claimedIDs, to + 1, to + size)
    at = to + size + 1
  end
  local runs, extended = #ids > 0 and call('HMGET', run, unpack(ids)) or {}, {}
  for i, id in ipairs(ids) do
    local token, attempt, crashes, due_, flags, next, kind = match(runs[i] or '', '^(%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (.*)$')
    local ends = token == int(answer.base + i - 1) and tonumber(call('ZSCORE', lease, id) or '')
    answer.ids[i], answer.scores[i], answer.records[i], answer.runs[i] = id, '0', false, false
    if ends and ends > now then
      answer.records[i] = call('HGET', task, id)
      flags = (string.find(flags, 's', 1, true) and 's' or '') .. (next == '-' and '' or 'f' .. next)
      answer.runs[i] = table.concat({0, attempt - 1, crashes, due_, flags == '' and '-' or flags, '-', kind}, ' ')
      extended[#extended + 1], extended[#extended + 2] = deadline, id
    end
  end
  if #extended > 0 then call('ZADD', lease, unpack(extended)) end
end

local p = first + 18
if reports > 0 and not again then
  local ids, digits, doneIDs = {}, {}, {}
  for i = 1, reports do ids[i] = ARGV[p + 6 * i - 5] end
  local runs = call('HMGET', run, unpack(ids))
  for i = 1, reports do
    local at, r = p + 6 * i - 6, runs[i]
    local done = ARGV[at + 2] .. ' 1 0 ' .. ARGV[at + 4] .. ' ' .. workerFlag .. ' - '
    if ARGV[at] == 'd' and ARGV[at + 3] == '' and r and sub(r, 1, #done) == done then
      doneIDs[#doneIDs + 1], digits[i] = ids[i], '1'
    end
  end
  local finished = #doneIDs
  if finished > 0 then
    -- The usual report: done at the first attempt, and the task does not repeat.
    call('HDEL', task, unpack(doneIDs))
    call('HDEL', run, unpack(doneIDs))
    call('HDEL', err, unpack(doneIDs)) -- attempts that were handed back do not count, but may have left their text
    call('ZREM', lease, unpack(doneIDs))
  end
  if finished < reports then
--include lib.lua
--include finish.lua
    finished = finished + finishReports(p, ids, runs, digits)
  end
  if finished > 0 then addTo('done', saved.done, finished) end
  for i = 1, limiting and reports or 0 do
    if digits[i] ~= '0' then limiting.remove(runs[i]) end
  end
  accepted = 'a' .. table.concat(digits)
end

p = p + 6 * reports
if extends > 0 and not again then
  local ids, digits, held = {}, {}, {}
  for i = 1, extends do ids[i] = ARGV[p + 2 * i - 2] end
  local runs = call('HMGET', run, unpack(ids))
  for i, id in ipairs(ids) do
    local token, flags = match(runs[i] or '', '^(%d+) %d+ %d+ %d+ (%S+)')
    if token ~= ARGV[p + 2 * i - 1] then
      digits[i] = '0'
    else
      digits[i] = string.find(flags, 'c', 1, true) and '2' or '1'
      held[#held + 1], held[#held + 2] = deadline, id
    end
  end
  if #held > 0 then call('ZADD', lease, unpack(held)) end
  leases = 'l' .. table.concat(digits)
end

if n then
  local ends = tonumber(call('ZRANGE', lease, 0, 0, 'WITHSCORES')[2] or '')
  if not again then
    if isNew then
      if call('HEXISTS', lists .. claim.listID, '') == 0 then
--include names.lua
        storeNames(claim.listID, list)
      end
      if ARGV[first + 17] ~= '' then set('w:' .. sender, ARGV[first + 17]) end
      call('HSET', crew, sender, names)
    end
    local anyExpired = ends and ends <= now
    if not last or anyExpired then
--include lib.lua
      if not last then deleteOldSenders() end
      if anyExpired then
--include expire.lua
        ends = endExpired(maxCrashes, limiting)
      end
    end
    if limiting and saved.groups then limiting.dropIdle() end
    if saved.keeps then
      -- Delete some entries that have expired: more than this round has added, which are at
      -- most two for each report. See deleteExpired of package machine.
      local expired = call('ZRANGEBYSCORE', past, '-inf', int(now), 'LIMIT', 0, 100 + 4 * reports)
      if #expired > 0 then
        call('HDEL', task, unpack(expired))
        call('HDEL', run, unpack(expired))
        call('HDEL', err, unpack(expired))
        call('ZREM', past, unpack(expired))
        call('ZREM', ended, unpack(expired))
      end
      local expiry = tonumber(call('ZRANGE', past, 0, 0, 'WITHSCORES')[2] or '')
      if expiry and expiry < farthest then
        expiry = expiry <= now and now + 10000 or math.max(expiry, now + 1000000)
        ends = math.min(ends or expiry, expiry)
      end
    end
  end

  -- Claim the tasks that have been due longest, and stop when the records have about 768 KB.
--include claim.lua
  pick(claim, groupsOf, limiting)
  local more = claim.more
  if again then
    more = claim.count > 0
  elseif #claim.sources > 0 then
    local dueIDs, dueTimes = claim.ids, claim.times
    local ids, scores, records, froms, runs, bytes, i, k = {}, {}, {}, {}, {}, 0, 1, 0
    while i <= n and dueIDs[i] and bytes < 786432 do
      local to = math.min(i + (k > 0 and bytes < 8192 * k and 15 or 3), n, #dueIDs)
      local values = call('HMGET', task, unpack(dueIDs, i, to))
      for j = i, to do
        local id, record, s = dueIDs[j], values[j - i + 1], claim.froms[j]
        s.ids[#s.ids + 1] = id
        if record and (s.handler == '' or kindOf(record) == s.plain) then
          k = k + 1
          -- Redis writes 16 digits without an exponent, but miniredis with one.
          ids[k], scores[k], records[k], froms[k] = id, #dueTimes[j] == 16 and dueTimes[j] or int(dueTimes[j]), record, s
          bytes = bytes + #record
        elseif not record then
          -- This id has no task: only damage can leave such an entry.
          call('HDEL', run, id)
          call('HDEL', err, id)
        end
      end
      i = to + 1
    end
    more = more or dueIDs[i] ~= nil
    if k > 0 then
      runs = call('HMGET', run, unpack(ids))
      -- Tokens must not decrease, even after a failover to a server that lacks data.
      local firstToken = math.max(fence + 1, now)
      local held, sets, names = {}, {}, {}
      for i, id in ipairs(ids) do
        local r, kind, token = runs[i], froms[i].plain, int(firstToken + i - 1)
        held[2 * i - 1], held[2 * i] = deadline, id
        sets[2 * i - 1] = id
        if r then
          local attempt, crashes, at, flags = match(r, '^%d+ (%d+) (%d+) (%d+) (%S+) ')
          if not at then attempt, crashes, at, flags = 0, 0, int(now), '-' end -- damaged
          local next = '-'
          if flags ~= '-' and flags ~= 's' then -- the task is due again after this run
            next, flags = match(flags, 'f(%d+)') or '-', string.gsub(string.gsub(flags, 'f%d+', ''), 'o', '')
            if flags == '' then flags = '-' end
          end
          if workerFlag ~= '-' then flags = (flags == '-' and '' or flags) .. workerFlag end
          sets[2 * i] = table.concat({token, attempt + 1, crashes, at, flags, next, kind}, ' ')
        else
          sets[2 * i] = token .. ' 1 0 ' .. scores[i] .. ' ' .. workerFlag .. ' - ' .. kind
        end
        names[i] = #id .. ':' .. id
      end
      call('HSET', run, unpack(sets))
      call('ZADD', lease, unpack(held))
      for i = 1, limiting and k or 0 do
        local l = limiting.of(froms[i].handler)
        if l then limiting.add(l) end
        local g = froms[i].group and limiting.ofGroup(froms[i].group, froms[i].handler)
        if g then limiting.add(g) end
      end
      answer.base, answer.ids, answer.scores, answer.records, answer.runs = firstToken, ids, scores, records, runs
      claimedIDs = table.concat(names)
      set('fence', int(firstToken + k - 1))
      addTo('claimed', saved.claimed, k)
    end
    -- Kinds change their places together: first they are added, and then removed.
    local added, removed = {}, {}
    local function add(key, at, kind)
      local list = added[key] or {}
      added[key], list[#list + 1] = list, int(at)
      list[#list + 1] = kind
    end
    local function remove(key, kind)
      local list = removed[key] or {}
      removed[key], list[#list + 1] = list, kind
    end
    for _, s in ipairs(claim.sources) do
      if #s.ids > 0 then
        call('ZREM', s.key, unpack(s.ids))
        if s.group then call('ZREM', due .. '@' .. s.handler .. s.schedule, unpack(s.ids)) end
      end
      -- Update the time of each kind: its first task may have been claimed, cancelled or
      -- moved. A kind that a limit holds back, or whose tasks are due later, changes its place.
      -- The page has the first remaining task, unless all of its tasks were claimed.
      local head = s.page[2 * (#s.ids - s.before) + 2] or call('ZRANGE', s.key, 0, 0, 'WITHSCORES')[2]
      local isDue = head and tonumber(head) <= now
      local home, setAside = s.group and groups .. 'kinds' or kinds, s.group and groups .. 'aside' or aside
      local place, at = home, head
      if isDue and s.group and not s.blocked then claim.recheck(s) end
      if isDue and s.blocked then
        add(groups .. 'blocked', 0, s.kind)
      elseif s.group then
        remove(groups .. 'blocked', s.kind)
      end
      if isDue and s.aside then
        place = aside .. ':' .. s.aside
      elseif isDue and s.permit then
        at = s.permit
      elseif isDue then
        place = s.table
      end
      if head and (place ~= s.table or tonumber(at) ~= s.at) then
        if isDue and place ~= home and not s.blocked then add(setAside, at, s.kind) end
        add(place, at, s.kind)
      end
      if not head or place ~= s.table then remove(s.table, s.kind) end
      if s.table ~= home and place == home then remove(setAside, s.kind) end
    end
    for key, list in pairs(added) do call('ZADD', key, unpack(list)) end
    for key, list in pairs(removed) do call('ZREM', key, unpack(list)) end
  end
  if #claim.strange > 0 and not again then
--include strange.lua
    wakeAll = setAside(claim.strange)
  end
  if #claim.halted > 0 and not again then
    for _, s in ipairs(claim.halted) do
      call('ZADD', s.group and groups .. 'aside' or aside, 'LT', int(s.at), s.kind)
      call('ZADD', aside .. ':=' .. s.handler, 'LT', int(s.at), s.kind)
      call('ZREM', s.table, s.kind)
    end
  end

  local next = more and now or tonumber(call('ZRANGEBYSCORE', kinds, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or '')
  if saved.groups and not more then
    local first = tonumber(call('ZRANGEBYSCORE', groups .. 'kinds', '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or '')
    next = math.min(next or first or 0, first or next or 0)
    if next == 0 then next = nil end
  end
  if claim.soonest and not more then next = math.min(next or claim.soonest, claim.soonest) end
  if (claim.exceeded or claim.waiting > 0) and pass ~= '' then
    if pass == 'w' then
      wakeOthers = true
    elseif tonumber(sub(pass, 2)) < call('HLEN', crew) then
      call('ZADD', wake, 0, pass)
    end
  end
  if not next then
    if armed or owner then call('HDEL', meta, 'armed', 'owner') end
  elseif paused then
    answer.own = 0
  else
    answer.wait = math.max(0, next - now)
    wakeOthers = wakeOthers or more and full
    if more and n == 0 then
      -- This worker cannot run the due tasks: another worker must become the owner.
      call('HDEL', meta, 'armed', 'owner')
      answer.own = 0
    elseif not armed or not owner or armed > next or owner == sender or armed < now - maxOwnerDelay then
      set('armed', int(next))
      set('owner', sender)
    else
      answer.own = 0
    end
  end
  -- New leases need no check: they end later than the worker sleeps.
  if ends then answer.lease = math.max(0, ends - now) end
end
if ARGV[first + 4] == '1' then
  call('HDEL', crew, sender)
  call('HDEL', meta, 'w:' .. sender)
  if owner == sender or fields[#fields] == sender then
    call('HDEL', meta, 'armed', 'owner')
    for i = #fields - 1, 3, -2 do
      if fields[i] == 'armed' or fields[i] == 'owner' then fields[i + 1] = nil fields[i] = nil end
    end
    wakeOthers = true
  end
end
if limiting and limiting.save() then wakeAll = true end
if wakeAll then
  for i = 3, math.min(call('HLEN', crew), 32) do call('ZADD', wake, i, 'y' .. i) end
end
if wakeOthers or wakeAll then call('ZADD', wake, 0, 'w', 1, 'x') end -- as wakeWorkers in lib.lua
fields[2] = table.concat({number, int(now), accepted, leases, int(answer.base), claimedIDs}, ' ')
call('HSET', meta, unpack(fields))
return {now, accepted, leases, answer.own, answer.wait, answer.lease, answer.base, answer.ids, answer.scores, answer.records, answer.runs,
  paused and 1 or 0, claim.limited, claim.more and 0 or claim.waiting, claim.pausedHandlers}
