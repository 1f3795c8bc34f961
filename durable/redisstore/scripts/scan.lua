-- scan WHAT CURSOR PATTERN TEXT finds tasks whose ids match a pattern, a few hundred at a time
-- and in no order, as SCAN does: the answer is the next cursor and the ids. WHAT is d and a
-- kind, for what waits, l for what runs, x for the dead, p for what is past, or f for what has
-- failed, with TEXT in its failures. With k the answer is all kinds.
local what, cursor, pattern, text = ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3]
if what == 'k' then return call('ZRANGE', kinds, 0, -1) end
local page
if what == 'f' then
  page = call('HSCAN', err, cursor, 'MATCH', pattern, 'COUNT', 200)
else
  page = call('ZSCAN', what == 'l' and lease or what == 'x' and dead or what == 'p' and past or due .. sub(what, 2), cursor, 'MATCH', pattern, 'COUNT', 500)
end
local answer = {page[1]}
for i = 1, #page[2], 2 do
  if what ~= 'f' or string.find(page[2][i + 1], text, 1, true) then answer[#answer + 1] = page[2][i] end
end
return answer
