-- check answers with the schema, after having stored it if there was none.
begin()
return call('HGET', meta, 'schema')
