-- get ID answers with place, score, record, run and failures, or with nothing.
--include clock.lua
--include lib.lua
local id = ARGV[5]
local record = call('HGET', task, id)
if not record then return {} end
for i, place in ipairs({due, lease, dead}) do
  local score = call('ZSCORE', place, id)
  if score then
    return {i, int(score), record, call('HGET', run, id) or '', call('HGET', err, id) or ''}
  end
end
return {}
