-- pause ON, with ON 1 or 0.
--include lib.lua
begin()
if ARGV[2] == '1' then
  call('HSET', meta, 'paused', 1)
else
  call('HDEL', meta, 'paused', 'armed', 'owner')
  rouse()
end
return 1
