-- get ID answers with state, time, record, run, failures, and the record of what follows,
-- or with nothing.
local id = ARGV[first]
local record = call('HGET', task, id)
if not record then return {} end
for state, place in ipairs({due .. kindOf(record), lease, dead}) do
  local score = call('ZSCORE', place, id)
  if score then
    return {state, int(score), record, call('HGET', run, id) or '', call('HGET', err, id) or '', call('HGET', follows, id) or ''}
  end
end
return {}
