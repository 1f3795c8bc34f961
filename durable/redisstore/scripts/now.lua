-- now returns the clock. begin.lua has already checked that the client knows this shard.
return int(now)
