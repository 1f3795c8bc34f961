-- checked RUN SET answers with 1 if the shard was looked over since its server, whose
-- run has this id, was started; with SET 1 it has been just now.
if ARGV[first + 1] == '1' then
  call('HDEL', run, '') -- see permit in lib.lua
  call('HSET', meta, 'checked', ARGV[first])
end
return call('HGET', meta, 'checked') == ARGV[first] and 1 or 0
