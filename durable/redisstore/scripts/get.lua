-- get ID... returns how many ids it has processed, the paused handlers, and then for each
-- task that exists and has not expired: id, state, time, record, run, failures, and the record
-- that was scheduled while the task runs. If the tasks are large, it does not process all ids.
--include kind.lua
local answer, weight = {0, table.concat(call('HKEYS', stopped))}, 0
for i = first, #ARGV do
  if weight > 512 * 1024 then break end
  local id = ARGV[i]
  local record = call('HGET', task, id)
  answer[1] = answer[1] + 1
  for state, place in ipairs(record and {due .. kindOf(record), lease, dead, past, due .. '!' .. kindOf(record), due .. '~' .. kindOf(record)} or {}) do
    local score = call('ZSCORE', place, id)
    if score and (state ~= 4 or tonumber(score) > now) then
      weight = weight + #record
      local k = #answer
      answer[k + 1], answer[k + 2], answer[k + 3], answer[k + 4] = id, state > 4 and 1 or state, int(score), record
      answer[k + 5], answer[k + 6] = call('HGET', run, id) or '', call('HGET', err, id) or ''
      answer[k + 7] = call('HGET', follows, id) or ''
      break
    end
  end
end
return answer
