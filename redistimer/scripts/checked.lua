-- checked RUN SET answers with 1 if the shard was looked over since its server, whose
-- run has this id, was started; with SET 1 it has been just now.
--include clock.lua
--include lib.lua
if ARGV[6] == '1' then
  permit()
  call('HSET', meta, 'checked', ARGV[5])
end
return call('HGET', meta, 'checked') == ARGV[5] and 1 or 0
