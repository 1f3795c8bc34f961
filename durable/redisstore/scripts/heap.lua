-- Functions for a heap, whose first element is the first in the order of before.

-- sink moves the element at i down to its place.
local function sink(heap, i, before)
  local x = heap[i]
  while x do
    local child = 2 * i
    if heap[child + 1] and before(heap[child + 1], heap[child]) then child = child + 1 end
    if not heap[child] or not before(heap[child], x) then break end
    heap[i], i = heap[child], child
  end
  heap[i] = x
end

-- heapify makes a heap of a list.
local function heapify(list, before)
  for i = math.floor(#list / 2), 1, -1 do sink(list, i, before) end
end
