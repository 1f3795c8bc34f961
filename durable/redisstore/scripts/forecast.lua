-- forecast [MOMENT]... answers with how many tasks that wait are due before each, for as
-- many moments as take about 1,000 steps.
local out, steps, all = {}, 0, call('ZRANGE', kinds, 0, -1)
for i = first, #ARGV do
  local k = #out + 1
  out[k] = 0
  for _, kind in ipairs(all) do out[k] = out[k] + call('ZCOUNT', due .. kind, '-inf', '(' .. ARGV[i]) end
  steps = steps + #all
  if steps > 1000 then break end
end
return out
