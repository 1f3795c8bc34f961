-- round NUMBER UNTIL LEASE CRASHES LEAVE REPORTS EXTENDS N FULL NAMES ... carries out the
-- round with this NUMBER of a worker UNTIL some moment: its reports, its extensions and, if
-- N is not empty, a claim of at most N tasks. Leases last for LEASE microseconds, and a run
-- dies with its CRASHES-th. LEAVE is 1 if the worker will not come again, FULL is 1 if it
-- has no place for more than N: then others are woken for what is left, which it would come
-- for at once otherwise. NAMES is what the worker knows: for how many microseconds it may
-- be silent, and for each handler and schedule "\0hLENGTH:NAME" or "\0sLENGTH:NAME". Behind
-- it are so many
--
--   REPORTS    OP ID TOKEN WHEN DUE TEXT
--   EXTENDS    ID TOKEN
--
-- Between NAMES and them are four more: ROOMS, which is empty or has for each handler
-- "\0hLENGTH:NAME\0MOST FIRST"; SUSPECTS, how many tasks at most the claim gets that have
-- crashed before, or an empty string; PASS, which is 1 if others are woken for what it has no
-- room for; and ALONE, which is 1 if the worker runs nothing but what it extends.
--
-- The ops of reports are
--
--   d  done. If WHEN is not empty the task repeats and is due then.
--   r  failed; the next attempt is at WHEN. TEXT is the error.
--   x  failed for good. If WHEN is not empty the task repeats, is due then, and the
--      dead letter has an id of its own: one for all runs of the task that died.
--   m  failed for good likewise, but the run was not begun: the attempt does not count.
--   D, X and M are d, x and m of a task that asks to keep something: see kept.lua. TEXT of D
--      is what is kept with the run.
--   b  handed back: the attempt does not count. If WHEN is not empty it is due then.
--
-- DUE is when the run was due, which is another moment than the claim said if missed
-- runs were left out.
--
-- The answer is
--
--   now accepted leases own wait lease base ids scores records runs paused limited
--
-- Accepted has, behind an a, a digit for each report: 1 if it was accepted, 0 if the
-- lease with this token is no more, and nothing was done, 2 if the task was scheduled
-- again or cancelled meanwhile, and what that said was done instead. Leases has, behind an l,
-- a digit for each extension: 1 if it was extended, 0 if the lease is no more, 2 if it was
-- and a cancel was asked for. The four behind base are lists: the tasks, when they were due, their
-- records and their runs as they were before. Paused is 1 if the shard is, and limited if a
-- limit keeps a task from the claim until another one ends. The token of the first is base, of the next
-- base + 1, and so on; what has no record is no task. Wait is the time until the next task
-- is due, lease that until the next lease ends, both -1 if there is none.
--
-- The same number again gives the same answer to reports and extensions, and the same
-- tasks, as far as they still have their leases.
--
-- One worker watches the shard, which set its timer for the first task that is due,
-- or will: it is the owner, and meta has the moment as armed. Whoever schedules
-- something earlier puts members into wake, and the worker that gets the first of
-- them claims and becomes the owner. Each other worker, which is told own = 0, looks a
-- little later than the task is due, in case the owner is gone, and becomes the owner
-- if it is. If what has become due is of a kind that the worker does not know, all are
-- woken, once: meta has as called until when. It matters for speed alone: any claim is
-- right at any time.
local sender, number, ending, length, most = ARGV[3], ARGV[first], tonumber(ARGV[first + 1]), ARGV[first + 2], tonumber(ARGV[first + 3])
local reports, extends, n = tonumber(ARGV[first + 5]), tonumber(ARGV[first + 6]), tonumber(ARGV[first + 7])
local full, names = ARGV[first + 8] == '1', ARGV[first + 9]
local rooms, suspects = ARGV[first + 10], tonumber(ARGV[first + 11])
local pass, alone = ARGV[first + 12] == '1', ARGV[first + 13] == '1'
local last, fence, paused, owner, called = m[3], tonumber(m[4] or '0'), m[5], m[6], tonumber(m[9] or '0')
claims = n and n > 0 and not paused
local gone = 100000 -- microseconds after which an owner was not in time
local wakes = false -- whether others are to look at the shard

local before, kept
if last then
  before, kept = match(last, '^(%d+) %d+ (.*)$')
  if #number < #before or #number == #before and number < before then return redis.error_reply('TICKLESS stale') end
end
local again = before == number
if not again and ending and now > ending then return redis.error_reply('TICKLESS late') end
call('HDEL', run, '') -- see permit in lib.lua

local accepted, leases, base, had = 'a', 'l', '0', ''
local out = {now, accepted, leases, 1, -1, -1, 0, {}, {}, {}, {}, paused and 1 or 0, 0}
local deadline = int(now + length)
local fields = {sender, ''} -- what is written into meta at the end
local function set(field, value)
  local k = #fields
  fields[k + 1], fields[k + 2] = field, value
end

local limits, limited, limitOf, spare, take, release -- only if there are limits
if m[11] then
--include limits.lua
end

if again then
  -- The answer was lost. What was claimed is kept with its ids.
  accepted, leases, base, had = match(kept, '^(%S+) (%S+) (%d+) (.*)$')
  if not accepted then return redis.error_reply('TICKLESS stale') end
  out[2], out[3], out[7] = accepted, leases, tonumber(base)
  local ids, at = {}, 1
  while at <= #had do
    local _, to, size = string.find(had, '^(%d+):', at)
    ids[#ids + 1] = sub(had, to + 1, to + size)
    at = to + size + 1
  end
  local runs, extended = #ids > 0 and call('HMGET', run, unpack(ids)) or {}, {}
  for i, id in ipairs(ids) do
    local token, attempt, crashes, due_, kind = match(runs[i] or '', '^(%d+) (%d+) (%d+) (%d+) %S+ %S+ (.*)$')
    local ends = token == int(out[7] + i - 1) and tonumber(call('ZSCORE', lease, id) or '')
    out[8][i], out[9][i], out[10][i], out[11][i] = id, '0', false, false
    if ends and ends > now then
      out[10][i] = call('HGET', task, id)
      out[11][i] = table.concat({0, attempt - 1, crashes, due_, '-', '-', kind}, ' ')
      extended[#extended + 1], extended[#extended + 2] = deadline, id
    end
  end
  if #extended > 0 then call('ZADD', lease, unpack(extended)) end
end

local p = first + 14
if reports > 0 and not again then
  local ids, digits, over = {}, {}, {}
  for i = 1, reports do ids[i] = ARGV[p + 6 * i - 5] end
  local runs = call('HMGET', run, unpack(ids))
  for i = 1, reports do
    local at, r = p + 6 * i - 6, runs[i]
    local done = ARGV[at + 2] .. ' 1 0 ' .. ARGV[at + 4] .. ' - - '
    if ARGV[at] == 'd' and ARGV[at + 3] == '' and r and sub(r, 1, #done) == done then
      over[#over + 1], digits[i] = ids[i], '1'
    end
  end
  local finished = #over
  if finished > 0 then
    -- Nearly all: done at the first attempt, and nothing comes after it.
    call('HDEL', task, unpack(over))
    call('HDEL', run, unpack(over))
    call('ZREM', lease, unpack(over))
  end
  if finished < reports then
--include lib.lua
--include finish.lua
  end
  if finished > 0 then set('done', int((m[8] or 0) + finished)) end
  for i = 1, limited and reports or 0 do
    if digits[i] ~= '0' then release(runs[i]) end
  end
  accepted = 'a' .. table.concat(digits)
  out[2] = accepted
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
      if alone and not string.find(flags, 'a', 1, true) then
        local head, rest = match(runs[i], '^(%d+ %d+ %d+ %d+ )%S+(.*)$')
        call('HSET', run, ids[i], head .. (flags == '-' and 'a' or flags .. 'a') .. rest)
      end
      digits[i] = string.find(flags, 'c', 1, true) and '2' or '1'
      held[#held + 1], held[#held + 2] = deadline, id
    end
  end
  if #held > 0 then call('ZADD', lease, unpack(held)) end
  leases = 'l' .. table.concat(digits)
  out[3] = leases
end

if n then
  local ends = tonumber(call('ZRANGE', lease, 0, 0, 'WITHSCORES')[2] or '')
  if not again then
    if call('HGET', crew, sender) ~= names then call('HSET', crew, sender, names) end
    local over = ends and ends <= now
    if not last or over then
--include lib.lua
      if not last then sweep() end
      if over then
--include expire.lua
      end
    end
    if m[10] then
      -- Some of what is kept no longer.
      local some = call('ZRANGEBYSCORE', past, '-inf', int(now), 'LIMIT', 0, 100)
      if #some > 0 then
        call('HDEL', task, unpack(some))
        call('HDEL', run, unpack(some))
        call('HDEL', err, unpack(some))
        call('ZREM', past, unpack(some))
      end
    end
  end

  -- The claim gets what has been due for longest. It looks at the first 1,000 kinds that
  -- are due, and stops when the records have a megabyte or so.
  local more, heads, sources, closed = false, {}, {}, {}
  -- For what is due there may be no room, and soonest is when the next of these kinds is due.
  local kept, soonest, known, byHandler = false, nil, nil, {}
  if not paused then heads = call('ZRANGEBYSCORE', kinds, '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, 1000) end
  for i = 1, #heads, 2 do
    -- What is damaged every worker knows: it makes a dead letter of it.
    local kind, head = heads[i], tonumber(heads[i + 1])
    local size = match(kind, '^%d+')
    local to = size and #size + 1 + size
    if not size or string.find(names, '\0h' .. sub(kind, 1, to), 1, true) and
        (#kind == to or string.find(names, '\0s' .. (#kind - to) .. ':' .. sub(kind, to + 1), 1, true)) then
      local s = {key = due .. kind, kind = kind, head = head, from = 0, ids = {},
        mark = string.char(math.floor(#kind / 256), #kind % 256) .. kind}
      if size and (limited or rooms ~= '') then
        local handler = sub(kind, 1, to)
        local r = byHandler[handler]
        if not r then
          r = {most = math.huge, first = math.huge, taken = 0, later = 0}
          if rooms ~= '' then
            local _, at = string.find(rooms, '\0h' .. handler .. '\0', 1, true)
            local most, share = match(rooms, '^(%d+) (%d+)', at + 1)
            most = tonumber(most)
            r.most, r.first = most == n and math.huge or most, tonumber(share)
          end
          r.limit = limited and r.most > 0 and limitOf(handler)
          if r.limit then
            local k = spare(r.limit)
            r.most, r.first = math.min(r.most, k), math.min(r.first, k)
          end
          byHandler[handler] = r
        end
        s.room = r
      end
      local list = s.room and s.room.limit and s.room.most == 0 and closed or sources
      list[#list + 1] = s
    elseif head > called and not again then
      for i = 3, math.min(call('HLEN', crew), 32) do call('ZADD', wake, i, 'y' .. i) end
      called, wakes = now, true
      set('called', int(now))
    end
  end
  if again then
    more = #sources > 0
  elseif #sources > 0 then
--include merge.lua
    local some, times, of = merge(sources, n + 1, now)
    if limited or rooms ~= '' or suspects then
      suspects = suspects or math.huge
--include rooms.lua
    end
    local ids, scores, records, froms, runs, bytes, i, k = {}, {}, {}, {}, {}, 0, 1, 0
    while i <= n and some[i] and bytes < 786432 do
      local to = math.min(i + (k > 0 and bytes < 65536 and 15 or 3), n, #some)
      local values = call('HMGET', task, unpack(some, i, to))
      for j = i, to do
        local id, record, s = some[j], values[j - i + 1], of[j]
        s.ids[#s.ids + 1] = id
        if record and (s.kind == '' or sub(record, 18, 17 + #s.mark) == s.mark) then
          k = k + 1
          -- Servers write 16 digits out, and miniredis an exponent.
          ids[k], scores[k], records[k], froms[k] = id, #times[j] == 16 and times[j] or int(times[j]), record, s
          runs[k] = known and known[j]
          bytes = bytes + #record
        elseif not record then
          -- An id without a task, which only damage can leave, cannot run.
          call('HDEL', run, id)
          call('HDEL', err, id)
        end
      end
      i = to + 1
    end
    more = some[i] ~= nil
    if k > 0 then
      if not known then runs = call('HMGET', run, unpack(ids)) end
      -- Tokens do not go back if the server is replaced by one that knows less.
      local low = math.max(fence + 1, now)
      local held, sets, names = {}, {}, {}
      for i, id in ipairs(ids) do
        local r, kind, token = runs[i], froms[i].kind, int(low + i - 1)
        held[2 * i - 1], held[2 * i] = deadline, id
        sets[2 * i - 1] = id
        if r then
          local attempt, crashes, at = match(r, '^%d+ (%d+) (%d+) (%d+) ')
          if not at then attempt, crashes, at = 0, 0, int(now) end -- damaged
          sets[2 * i] = table.concat({token, attempt + 1, crashes, at, '- -', kind}, ' ')
        else
          sets[2 * i] = token .. ' 1 0 ' .. scores[i] .. ' - - ' .. kind
        end
        names[i] = #id .. ':' .. id
      end
      call('HSET', run, unpack(sets))
      call('ZADD', lease, unpack(held))
      for i = 1, limited and k or 0 do
        local room = froms[i].room
        if room and room.limit then take(room.limit) end
      end
      out[7], out[8], out[9], out[10], out[11] = low, ids, scores, records, runs
      base, had = int(low), table.concat(names)
      set('fence', int(low + k - 1))
      set('claimed', int((m[7] or 0) + k))
    end
    local firsts = {}
    for _, s in ipairs(sources) do
      if #s.ids > 0 then call('ZREM', s.key, unpack(s.ids)) end
      -- What was cancelled, or moved, may have been the first.
      if #s.ids > 0 or s.score ~= s.head then
        local first = call('ZRANGE', s.key, 0, 0, 'WITHSCORES')[2]
        if first then
          firsts[#firsts + 1], firsts[#firsts + 2] = int(first), s.kind
        else
          call('ZREM', kinds, s.kind)
        end
      end
    end
    if #firsts > 0 then call('ZADD', kinds, unpack(firsts)) end
  end

  if limited then
    for _, s in ipairs(sources) do closed[#closed + 1] = s end
    for _, s in ipairs(closed) do
      -- What a limit keeps from the claim.
      local l, k, at = s.room and s.room.limit, 1, nil
      if l then k, at = spare(l) end
      local first = k == 0 and call('ZRANGE', s.key, 0, 0, 'WITHSCORES')[2]
      if k > 0 then
        -- It keeps nothing.
      elseif not first then
        call('ZREM', kinds, s.kind)
      elseif tonumber(first) > now then
        call('ZADD', kinds, int(first), s.kind)
      elseif at then
        soonest = math.min(soonest or at, at)
      else
        out[13] = 1
        if l.kept == '0' then l.kept, l.changed = '1', true end
      end
    end
  end

  local next = more and now or tonumber(call('ZRANGEBYSCORE', kinds, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or '')
  if soonest and not more then next = math.min(next or soonest, soonest) end
  if kept and pass then wakes = true end
  if not next then
    if armed or owner then call('HDEL', meta, 'armed', 'owner') end
  elseif paused then
    out[4] = 0
  else
    out[5] = math.max(0, next - now)
    wakes = wakes or more and full
    if more and n == 0 then
      -- The worker has no room. Let another one have it.
      call('HDEL', meta, 'armed', 'owner')
      out[4] = 0
    elseif not armed or not owner or armed > next or owner == sender or armed < now - gone then
      set('armed', int(next))
      set('owner', sender)
    else
      out[4] = 0
    end
  end
  -- What was claimed just now ends later than a worker sleeps without looking.
  if ends then out[6] = math.max(0, ends - now) end
end
if ARGV[first + 4] == '1' then
  call('HDEL', crew, sender)
  if owner == sender or fields[#fields] == sender then
    call('HDEL', meta, 'armed', 'owner')
    for i = #fields - 1, 3, -2 do
      if fields[i] == 'armed' or fields[i] == 'owner' then fields[i + 1] = nil fields[i] = nil end
    end
    wakes = true
  end
end
if limited then
  for handler, l in pairs(limited) do
    if l and l.changed then
      if l.kept == '1' and l.running < l.most then
        l.kept, wakes = '0', true
        for i = 3, math.min(call('HLEN', crew), 32) do call('ZADD', wake, i, 'y' .. i) end
      end
      call('HSET', limits, handler, table.concat({l.most, int(l.every), l.burst, l.running, int(l.full), l.kept, l.rate}, ' '))
    end
  end
end
if wakes then call('ZADD', wake, 0, 'w', 1, 'x') end -- as rouse in lib.lua
fields[2] = number .. ' ' .. int(now) .. ' ' .. accepted .. ' ' .. leases .. ' ' .. base .. ' ' .. had
call('HSET', meta, unpack(fields))
return out
