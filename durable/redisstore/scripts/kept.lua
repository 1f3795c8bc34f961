-- Functions to keep finished runs: see store.Keeping. A key with kept runs has a head, an
-- entry of past with the key's id and "\0h" after it.

-- keeps returns what a task asks to keep, like Task.Keeps of package store: how long its
-- key is unique, how long its runs are kept, and how many. Most tasks ask for nothing.
local function keeps(record)
  local kind = kindOf(record)
  if kind == '' or byte(record, 20 + #kind) ~= 1 or (byte(record, 27 + #kind) or 0) < 128 then return nil end
  local digits = match(sub(record, 28 + #kind, 65 + #kind), '^%d+$')
  if not digits or #digits < 38 then return nil end
  local limit = 5361120000000000
  return math.min(limit, tonumber(sub(digits, 1, 16))), math.min(limit, tonumber(sub(digits, 17, 32))), tonumber(sub(digits, 33))
end

-- headOf returns the id of a key's head, the time until which the key cannot be
-- scheduled, how many runs of the key have been kept, and when the head expires. If it has
-- expired, so have its runs.
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
  kind = sub(kind, 1, #size + 1 + size) -- without its schedule
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
