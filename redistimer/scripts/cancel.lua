-- cancel [ID]... answers with a digit for each, its outcome.
--include lib.lua
local absent, removed, stopping = 1, 7, 8
local out, cancelled = {}, 0
for i = 2, #ARGV do
  local id = ARGV[i]
  out[i - 1] = absent
  if call('ZREM', due, id) == 1 then
    forget(id)
    out[i - 1] = removed
    cancelled = cancelled + 1
  else
    local r = call('HGET', run, id)
    local token, attempt, crashes, at, flags = parse(r)
    if token ~= '0' then
      call('HSET', run, id, state(token, attempt, crashes, at, 'c', '-'))
      out[i - 1] = stopping
      if flags ~= 'c' then cancelled = cancelled + 1 end
    end
  end
end
count('cancelled', cancelled)
return table.concat(out)
