-- get ID answers with state, score, record, run, failures, and
-- the record of what follows, or with nothing.
--include clock.lua
local id = ARGV[2]
local record = call('HGET', task, id)
if not record then return {} end
local states = {1, 1, 2, 3}
for i, place in ipairs({due, aside, lease, dead}) do
  local score = call('ZSCORE', place, id)
  if score then
    return {states[i], int(score), record, call('HGET', run, id) or '', call('HGET', err, id) or '',
      call('HGET', task, id .. '\0new') or ''}
  end
end
return {}
