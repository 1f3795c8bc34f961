    -- What was put aside and the worker knows is due again, up to n + 1 tasks of each
    -- kind. The first kind is that of put. Of very many kinds a claim looks at some, and
    -- the next goes on there.
    local steps, from = 0, call('HGET', meta, 'kind')
    if from then put = call('ZRANGEBYLEX', kinds, '[' .. from, '+', 'LIMIT', 0, 1)[1] or put end
    while put and steps < 100 do
      steps = steps + 1
      local a, b, c, d = string.byte(put, 1, 4)
      local kind = string.sub(put, 1, 4 + a * 256 + b + c * 256 + d)
      if known(kind, 1) then
        local some = call('ZRANGEBYLEX', kinds, '[' .. kind, '(' .. kind .. ':', 'LIMIT', 0, n + 1)
        local ids, adds, rems = {}, {}, {}
        for i, name in ipairs(some) do ids[i] = string.sub(name, #kind + 17) end
        local there = call('ZMSCORE', due, unpack(ids))
        for i, score in ipairs(call('ZMSCORE', aside, unpack(ids))) do
          if there[i] then -- only damage has left it here
            call('ZREM', aside, ids[i])
          elseif score then
            adds[#adds + 1], adds[#adds + 2] = int(score), ids[i]
            rems[#rems + 1] = ids[i]
          end
        end
        if #rems > 0 then
          call('ZADD', due, unpack(adds))
          call('ZREM', aside, unpack(rems))
        end
        call('ZREM', kinds, unpack(some))
      end
      put = call('ZRANGEBYLEX', kinds, '(' .. kind .. ':', '+', 'LIMIT', 0, 1)[1]
    end
    if put then
      call('HSET', meta, 'kind', put)
    elseif from then
      call('HDEL', meta, 'kind')
    end
