-- forecast [MOMENT]... answers with how many tasks that wait are due before each.
local out, aged = {}, call('ZCARD', aside) > 0
for i = 2, #ARGV do
  out[i - 1] = call('ZCOUNT', due, '-inf', '(' .. ARGV[i]) + (aged and call('ZCOUNT', aside, '-inf', '(' .. ARGV[i]) or 0)
end
return out
