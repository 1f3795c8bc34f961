-- Functions for what a task asks for at the end of a run. Finished runs: see store.Keeping. A key with kept runs has a head, an
-- entry of past with the key's id and "\0h" after it.

-- keeps returns what a task asks to keep, like Task.Keeps of package store: how long its
-- key is unique, how long its runs are kept, and how many. Most tasks ask for nothing.
local function keeps(record)
  local kind = kindOf(record)
  record = content(record)
  if kind == '' or not hasFields(record, kind) or (byte(record, 27 + #kind) or 0) < 128 then return nil end
  local digits = match(sub(record, 28 + #kind, 65 + #kind), '^%d+$')
  if not digits or #digits < 38 then return nil end
  local limit = 5361120000000000
  return math.min(limit, tonumber(sub(digits, 1, 16))), math.min(limit, tonumber(sub(digits, 17, 32))), tonumber(sub(digits, 33))
end

-- headOf returns the id of a key's head, the time until which the key cannot be
-- scheduled, how many runs of the key have been kept, and when the head expires. The runs of a
-- head that has expired have expired too.
local function headOf(key)
  local head = key .. '\0h'
  local ends = tonumber(call('ZSCORE', past, head) or '0')
  if ends <= now then return head, 0, 0, 0 end
  local r = call('HGET', run, head)
  local _, _, _, at, _, runs = parseRun(r)
  return head, r and tonumber(at) or 0, tonumber(runs) or 0, ends
end

-- keep stores a finished run, if the task asks for this.
local function keep(id, record, attempt, crashes, due_, failures, done, result)
  local unique, length, most = keeps(record)
  if not unique then return end
  local blocks, history = done and unique > 0, length > 0 or most > 0
  if not blocks and not history then return end
  local nul, kind = string.find(id, '\0', 1, true), kindOf(record)
  local key, size = nul and sub(id, 1, nul - 1) or id, match(kind, '^%d+')
  local head, blocked, runs, ends = headOf(key)
  kind = groupOf(kind) or sub(kind, 1, #size + 1 + size) -- without its schedule
  -- Add the entry to past before its record. Otherwise, after a crash, Repair would make
  -- the record a pending task.
  local function put(id, at, run_, bytes)
    call('ZADD', past, int(at), id)
    call('HSET', task, id, string.rep('0', 16) .. '4' .. string.char(math.floor(#kind / 256), #kind % 256) .. kind .. bytes)
    call('HSET', run, id, run_)
    ends = math.max(ends, at)
  end
  if blocks then
    blocked = math.min(now + unique, farthest)
    ends = math.max(ends, blocked)
  end
  if history then
    local one = key .. '\0r' .. string.format('%012.0f', most > 0 and runs % most or runs)
    call('ZADD', ended, int(now), one)
    put(one, length > 0 and math.min(now + length, farthest) or farthest, formatRun('0', attempt, crashes, due_, '-', '-', kind),
      (done and 'd' or 'x') .. string.format('%016.0f', now) .. result)
    if failures ~= '' then call('HSET', err, one, failures) else call('HDEL', err, one) end
    runs = runs + 1
  end
  put(head, ends, formatRun('0', 0, 0, int(blocked), '-', runs > 0 and int(runs) or '-', kind), '')
  call('HSET', meta, 'keeps', 1)
end

-- followUp adds the task that follows a run, if the run's record asks for one, like
-- Task.FollowUp of package store.
local function followUp(id, record, token, done, due_, attempt, crashes, text)
  local kind = kindOf(record)
  record = content(record)
  if kind == '' or byte(record, 20 + #kind) ~= 2 then return end
  local a, b, c = match(sub(record, -18), '^(%d%d%d%d%d%d)(%d%d%d%d%d%d)(%d%d%d%d%d%d)$')
  if not a then return end
  a, b, c = tonumber(a), tonumber(b), tonumber(c)
  local from = #record - 18 - c - b - a -- the parts begin after this byte
  if from < 27 + #kind then return end
  local function part(first, size)
    if size == 0 then return true end
    local x = sub(record, first, first + size - 1)
    local n = tonumber(match(x, '^%d%d%d%d') or '0')
    local bytes = sub(x, 5 + n)
    if n == 0 or #bytes < 26 or byte(bytes) ~= 2 or sub(bytes, -6) ~= '000000' then return false end
    return true, sub(x, 5, 4 + n), bytes
  end
  local ok, handler, bytes = part(from + 1, a)
  local ok2, handler2, bytes2 = part(from + 1 + a, b)
  if not done then handler, bytes = handler2, bytes2 end
  if not ok or not ok2 or not handler then return end
  local newID = match(id, '^[^%z]*') .. '\0' .. '0' .. token
  if call('HEXISTS', task, newID) == 1 then return end
  local generation, rest = '', tonumber(token)
  for _ = 1, 6 do generation, rest = generation .. string.char(rest % 256), math.floor(rest / 256) end
  local over = string.format('%s%016.0f%010.0f%010.0f', done and 'd' or 'x', tonumber(due_), attempt, crashes) .. text
  bytes = sub(bytes, 1, 1) .. generation .. sub(bytes, 8, -19) .. over .. sub(bytes, -18, -7) .. string.format('%06.0f', #over)
  local group, own = groupOf(kind)
  kind = #handler .. ':' .. handler .. (group and sub(group, #own + 1) or '')
  addPending(newID, kind, int(now))
  call('HSET', task, newID, string.format('%016.0f', now) .. '5' .. string.char(math.floor(#kind / 256), #kind % 256) .. kind .. bytes ..
    string.format('%016.0f', tonumber(token)))
end
