-- repair KIND CURSOR N looks at about N entries of one of the shard's keys and
-- puts right what is wrong. The answer is the next cursor, 0 at the end, and how
-- many were looked at, requeued, doubled and orphaned.
--include clock.lua
--include lib.lua
local kind, cursor, n = ARGV[2], ARGV[3], ARGV[4]
local looked, requeued, doubled, orphaned = 0, 0, 0, 0

local keys = {due = due, aside = aside, kinds = kinds, lease = lease, dead = dead, task = task, run = run, err = err}
local scan = (kind == 'task' or kind == 'run' or kind == 'err') and 'HSCAN' or 'ZSCAN'
local page = call(scan, keys[kind], cursor, 'COUNT', n)

-- settle sees that a task is in one place.
local function settle(id, record)
  local d, s, l, x = call('ZSCORE', due, id), call('ZSCORE', aside, id), call('ZSCORE', lease, id), call('ZSCORE', dead, id)
  local r = call('HGET', run, id)
  local token, attempt, crashes, at = parse(r)
  local held = token ~= '0'
  if l and not held then
    call('ZREM', lease, id)
    l = nil
    if d or s or x then doubled = doubled + 1 end
  end
  if l then
    if d then call('ZREM', due, id) end
    if s then call('ZREM', aside, id) end
    if x then call('ZREM', dead, id) end
    if d or s or x then doubled = doubled + 1 end
    return
  end
  if held then
    -- Whoever has this token shall not finish what others may have got.
    r = state('0', attempt, crashes, at, '-', '-')
    call('HSET', run, id, r)
  end
  if d and s then
    call('ZREM', aside, id)
    doubled = doubled + 1
  end
  if (d or s) and x then
    call('ZREM', dead, id)
    doubled = doubled + 1
  end
  if s and not d then
    -- Without an entry in kinds nobody would bring it back.
    local known = kindOf(record)
    if not known or not call('ZSCORE', kinds, entryOf(known, s, id)) then
      call('ZADD', due, int(s), id)
      call('ZREM', aside, id)
      watch(tonumber(s))
      requeued = requeued + 1
    end
  end
  if not d and not s and not x and string.sub(id, -1) == '\0' then
    -- The dead letter of a repeating task's runs, of which the run has no time but their
    -- number: it does not wait.
    if not r then
      r = state('0', 0, 0, place(r, record), '-', 1)
      call('HSET', run, id, r)
    end
    call('ZADD', dead, int(now), id)
    requeued = requeued + 1
  elseif not d and not s and not x then
    local score = place(r, record)
    call('ZADD', due, score, id)
    watch(tonumber(score))
    requeued = requeued + 1
  end
  if x and not d and not s and not r then
    call('HSET', run, id, state('0', 0, 0, int(x), '-', '-'))
  end
end

-- beside sees to a record that waits for the end of a run.
local function beside(id, owner)
  local token, _, _, _, flags = parse(call('HGET', run, owner))
  if call('HEXISTS', task, owner) == 1 and token ~= '0' and has(flags, 'n') then return end
  call('HDEL', task, id)
  orphaned = orphaned + 1
end

-- entry sees whether what is in kinds is a task that was put aside.
local function entry(name)
  local a, b, c, d = string.byte(name, 1, 4)
  local size = d and 4 + a * 256 + b + c * 256 + d or 0
  local id = string.sub(name, size + 17)
  local score = call('ZSCORE', aside, id)
  if score and entryOf(kindOf(call('HGET', task, id)) or '', score, id) == name then return end
  call('ZREM', kinds, name)
  orphaned = orphaned + 1
end

for i = 1, #page[2], 2 do
  local id = page[2][i]
  looked = looked + 1
  if kind == 'task' then
    if string.sub(id, -4) == '\0new' then
      beside(id, string.sub(id, 1, -5))
    else
      settle(id, page[2][i + 1])
    end
  elseif kind == 'kinds' then
    entry(id)
  elseif call('HEXISTS', task, id) == 0 then
    orphaned = orphaned + 1
    if scan == 'ZSCAN' then call('ZREM', keys[kind], id) else call('HDEL', keys[kind], id) end
  end
end
return {page[1], looked, requeued, doubled, orphaned}
