-- Functions for a task that is due again at next, or if next is 0, when the report says,
-- because it was scheduled again: see store.Entry.

-- same reports whether two records differ at most in their time, generation and version.
local function same(a, b)
  a, b = content(a), content(b)
  local k = #kindOf(a)
  if not a or #a ~= #b or k ~= #kindOf(b) then return false end
  if #a < 26 + k then return sub(a, 18) == sub(b, 18) end
  return sub(a, 18, 20 + k) == sub(b, 18, 20 + k) and sub(a, 27 + k) == sub(b, 27 + k)
end

-- continues reports whether the run of a running task continues if the attempt does not
-- end it, like Entry.ChangesOnlyLater of package store.
local function continues(id, flags, next)
  return not hasFlag(flags, 'c') and tonumber(next) ~= farthest and repeats(id, call('HGET', task, id)) and
    (not hasFlag(flags, 'n') or repeats(id, call('HGET', follows, id)))
end

-- adopt gives a run that continues the new record, if there is one. It returns the kind of
-- the pending task, and its flags for what follows.
local function adopt(id, kind, flags, next)
  local record = hasFlag(flags, 'n') and call('HGET', follows, id)
  if record and (next == '0' or not same(call('HGET', task, id), record)) then
    kind = kindOf(record)
    call('HSET', task, id, record)
    call('HDEL', follows, id)
    record = nil
  end
  if next == '0' then return kind, '' end
  return kind, 'f' .. next .. (record and 'n' or '')
end
