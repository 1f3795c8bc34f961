-- check answers with the schema, after having stored it if there was none.
--include lib.lua
begin()
return call('HGET', meta, 'schema')
