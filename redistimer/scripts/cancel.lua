-- cancel [ID]... answers with a digit for each, its outcome.
--include once.lua
--include clock.lua
--include lib.lua
permit()
sweep()
local absent, removed, stopping = 1, 7, 8
local out, cancelled = {}, 0
for i = 5, #ARGV do
  local id = ARGV[i]
  local outcome = absent
  if call('ZSCORE', due, id) then
    forget(id)
    call('ZREM', due, id)
    outcome = removed
    cancelled = cancelled + 1
  else
    local token, attempt, crashes, at, flags = parse(call('HGET', run, id))
    if token ~= '0' then
      call('HSET', run, id, state(token, attempt, crashes, at, 'c', '-'))
      if has(flags, 'n') then call('HDEL', task, id .. '\0new') end
      outcome = stopping
      if not has(flags, 'c') then cancelled = cancelled + 1 end
    end
  end
  out[i - 4] = outcome
end
count('cancelled', cancelled)
return remember(table.concat(out))
