-- now returns the time. begin.lua has already checked SCHEMA.
return int(now)
