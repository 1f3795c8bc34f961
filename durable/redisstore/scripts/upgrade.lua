-- upgrade STEP CURSOR N changes the data of the schema before, in steps that each read about N
-- entries. SCHEMA is the stored schema. The steps, in this order, are
--
--   begin  gives the shard a schema that no Store supports, so that other Stores do not use
--          the shard meanwhile
--   past   adds the finished runs to ended
--   kinds  removes kinds without tasks
--   end    gives the shard this Store's schema
--
-- The answer is the next cursor of the step, or 0 at the step's end. After a crash another
-- Store begins again: each step may be repeated.
--include kind.lua
local step, cursor, n = ARGV[first], ARGV[first + 1], ARGV[first + 2]
local rest = match(saved.schema, '/.*$')
if step == 'begin' then
  call('HSET', meta, 'schema', '5to6' .. rest)
elseif step == 'end' then
  call('HSET', meta, 'schema', '6' .. rest)
else
  local page = call('ZSCAN', step == 'past' and past or kinds, cursor, 'COUNT', n)
  for i = 1, #page[2], 2 do
    local id = page[2][i]
    if step == 'kinds' then
      if call('ZCARD', due .. id) == 0 then call('ZREM', kinds, id) end
    else
      local at = endOf(id, call('HGET', task, id))
      if at then call('ZADD', ended, at, id) end
    end
  end
  return page[1]
end
return '0'
