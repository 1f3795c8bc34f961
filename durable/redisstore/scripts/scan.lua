-- scan WHAT CURSOR PREFIX TEXT finds tasks whose ids begin with PREFIX, a few hundred at a time
-- and in no order, as SCAN does: the answer is the next cursor and the ids. WHAT is d and a
-- kind, for what waits, l for what runs, x for the dead, p for what is past, or f for what has
-- failed, with TEXT in its failures. With k the answer is all kinds.
local what, cursor, prefix, text = ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3]
if what == 'k' then return call('ZRANGE', kinds, 0, -1) end
local page
if what == 'f' then
  page = call('HSCAN', err, cursor, 'COUNT', 200)
else
  page = call('ZSCAN', what == 'l' and lease or what == 'x' and dead or what == 'p' and past or due .. sub(what, 2), cursor, 'COUNT', 1000)
end
local answer = {page[1]}
for i = 1, #page[2], 2 do
  local id = page[2][i]
  if sub(id, 1, #prefix) == prefix and (what ~= 'f' or string.find(page[2][i + 1], text, 1, true)) then
    answer[#answer + 1] = id
  end
end
return answer
