-- pause ON, with ON 1 or 0.
--include once.lua
--include clock.lua
--include lib.lua
permit()
sweep()
if ARGV[5] == '1' then
  call('HSET', meta, 'paused', 1)
else
  call('HDEL', meta, 'paused', 'armed', 'owner')
  rouse()
end
return remember('1')
