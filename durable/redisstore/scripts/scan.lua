-- scan WHAT CURSOR PATTERN finds tasks whose ids match a pattern, some hundred at a time
-- and in no order, as ZSCAN does. It returns the next cursor and the ids. WHAT is d and a
-- kind for pending tasks, l for running ones, x for dead ones, or p for past ones. With
-- WHAT k it returns all kinds.
local what = ARGV[first]
if what == 'k' then return call('ZRANGE', kinds, 0, -1) end
local key = ({l = lease, x = dead, p = past})[what] or due .. sub(what, 2)
local page = call('ZSCAN', key, ARGV[first + 1], 'MATCH', ARGV[first + 2], 'COUNT', 500)
local answer = {page[1]}
for i = 1, #page[2], 2 do answer[#answer + 1] = page[2][i] end
return answer
