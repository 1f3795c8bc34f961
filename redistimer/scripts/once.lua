-- A command that comes for the second time gets the answer that it had. One that
-- was overtaken by the sender's next is not carried out any more: its sender does
-- not wait for it.
if last then
  local before, this = tonumber(string.sub(last, 1, 16)), tonumber(ARGV[3])
  if this < before then return redis.error_reply('TICKLESS stale') end
  if this == before then
    -- A WAIT that follows is to wait for what was done then. A full server allows
    -- that after a command which needs no memory: see permit in lib.lua.
    call('HDEL', run, '')
    call('HSET', meta, ARGV[2], last)
    local answer = string.sub(last, 18)
    local digit, n = string.match(answer, '^%*(%d) (%d+)$')
    return digit and string.rep(digit, tonumber(n)) or answer
  end
end
if ARGV[4] ~= '' then
  local clock = call('TIME')
  if clock[1] * 1000000 + clock[2] > tonumber(ARGV[4]) then
    return redis.error_reply('TICKLESS late')
  end
end
