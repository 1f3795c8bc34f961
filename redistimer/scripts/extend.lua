-- extend LEASE [ID TOKEN]... prolongs leases, and answers with a digit for each:
-- 1 if it was, 0 if the lease is no more, 2 if it was and a cancel was asked for.
--include clock.lua
--include lib.lua
permit()
local deadline = int(now + tonumber(ARGV[5]))
local out, ids = {}, {}
for i = 6, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local runs = call('HMGET', run, unpack(ids))
local leases = {}
for i, id in ipairs(ids) do
  local token, r = ARGV[2 * i + 5], runs[i]
  if not r or string.sub(r, 1, #token + 1) ~= token .. ' ' then
    out[i] = 0
  else
    leases[#leases + 1], leases[#leases + 2] = deadline, id
    local _, _, _, _, flags = parse(r)
    out[i] = has(flags, 'c') and 2 or 1
  end
end
if #leases > 0 then call('ZADD', lease, unpack(leases)) end
return table.concat(out)
