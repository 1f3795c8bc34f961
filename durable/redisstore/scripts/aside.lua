      -- Strange are tasks that are due and that this worker does not know: they go
      -- aside. If somebody else is there who knows them, all are woken, for nobody else
      -- would look so soon.
      local adds, names, rems, moved = {}, {}, {}, {}
      for i, x in ipairs(strange) do
        local id, score, kind = x[1], int(x[2]), kindOf(x[3])
        adds[2 * i - 1], adds[2 * i] = score, id
        names[2 * i - 1], names[2 * i] = 0, entryOf(kind, score, id)
        rems[i], moved[kind] = id, true
      end
      call('ZADD', aside, unpack(adds))
      call('ZADD', kinds, unpack(names))
      call('ZREM', due, unpack(rems))
      budget, strange = budget - #rems, nil
--include crew.lua
      local workers, wanted = everybody(), false
      for _, who in ipairs(workers) do
        if who.name ~= sender then
          for kind in pairs(moved) do wanted = wanted or knows(who, kind) end
        end
      end
      if wanted then
        rouse()
        for i = 3, math.min(#workers, 32) do call('ZADD', wake, i, 'y' .. i) end
      end
