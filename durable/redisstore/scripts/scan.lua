-- scan WHAT CURSOR PATTERN returns ids of tasks that match the pattern, after the cursor for
-- the next call. Like ZSCAN it returns them in no order, some hundred at a time. WHAT is d
-- and a kind for pending tasks, l for running tasks, x for dead letters, or p for past runs.
-- If WHAT is k, it returns all kinds instead.
local what = ARGV[first]
--include kinds.lua
if what == 'k' then return allKinds() end
local key = ({l = lease, x = dead, p = past})[what] or due .. sub(what, 2)
local page = call('ZSCAN', key, ARGV[first + 1], 'MATCH', ARGV[first + 2], 'COUNT', 500)
local answer = {page[1]}
for i = 1, #page[2], 2 do answer[#answer + 1] = page[2][i] end
return answer
