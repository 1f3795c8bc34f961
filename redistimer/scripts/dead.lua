-- dead N SCORE ID lists dead letters: at most N, those after that one by the time
-- of their death and, at one time, by their ids. The answer is
--
--   [id died record run failures]...
--include clock.lua
--include lib.lua

-- later compares as a ZSET does, by bytes. Lua's own comparison follows the locale
-- of the server.
local function later(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

local n, after, last = tonumber(ARGV[5]), ARGV[6], ARGV[7]
local out, offset = {}, 0
while #out < 5 * n do
  local page = call('ZRANGEBYSCORE', dead, after, '+inf', 'WITHSCORES', 'LIMIT', offset, n)
  if #page == 0 then break end
  offset = offset + n
  for i = 1, #page, 2 do
    local id, score = page[i], int(page[i + 1])
    if #out < 5 * n and (score ~= after or later(id, last)) then
      local k = #out
      out[k + 1], out[k + 2], out[k + 3] = id, score, call('HGET', task, id) or ''
      out[k + 4], out[k + 5] = call('HGET', run, id) or '', call('HGET', err, id) or ''
    end
  end
end
return out
