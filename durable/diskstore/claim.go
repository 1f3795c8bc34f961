package diskstore

import (
	"container/heap"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// claim gives the worker what is due.
func (sh *shard) claim(st *store.Stamp, r *store.Round) []store.Claimed {
	if sh.paused {
		return nil
	}
	// Tokens do not go back, whatever the clock does.
	sh.fence = max(sh.fence, int64(sh.now))
	var out []store.Claimed
	heads := sh.heads(&r.Claim)
	for len(out) < r.Claim.Max && len(heads) > 0 {
		k := heads[0]
		t := k.due.first()
		sh.load(t)
		sh.remove(t)
		sh.fence++
		t.Token = sh.fence
		t.Attempts++
		t.sender, t.number, t.lease = st.Sender, st.Number, r.Lease
		sh.run(t, sh.now.Add(r.Lease))
		out = append(out, t.claimed())
		if sh.head(k, sh.now) == nil {
			heap.Pop(&heads)
		} else {
			heap.Fix(&heads, 0)
		}
	}
	sh.Claimed += int64(len(out))
	return out
}

// heads are kinds of which a task is due, the one whose first has been due longest
// first. It is a heap.Interface.
type heads []*kind

func (h heads) Len() int { return len(h) }
func (h heads) Less(i, j int) bool {
	return h[i].due.first().mark().compare(h[j].due.first().mark()) < 0
}
func (h heads) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)   { *h = append(*h, x.(*kind)) }

func (h *heads) Pop() any {
	n := len(*h) - 1
	k := (*h)[n]
	*h = (*h)[:n]
	return k
}

// heads returns the kinds that a claim may get, and of which a task is due.
func (sh *shard) heads(c *store.Claim) heads {
	var out heads
	for _, k := range sh.kinds {
		if knows(c, k) && sh.head(k, sh.now) != nil {
			out = append(out, k)
		}
	}
	heap.Init(&out)
	return out
}

func knows(c *store.Claim, k *kind) bool {
	return slices.Contains(c.Handlers, k.handler) && (k.schedule == "" || slices.Contains(c.Schedules, k.schedule))
}

// next says when the worker should come again.
func (sh *shard) next(a *store.Answer, r *store.Round) {
	at, left := never, false
	if !sh.paused {
		left = r.Claim.Asked && len(sh.heads(&r.Claim)) > 0 // it reads what nextDue looks at
		at = sh.nextDue()
	}
	if r.Claim.Asked {
		// What is left for this worker says nothing of the others, who sleep longer.
		sh.told = max(sh.told, at)
	}
	if left {
		if r.Claim.Full {
			sh.s.wake(sh.index)
		}
		at = sh.now
	}
	if end, ok := sh.leases.Next(); ok {
		at = min(at, store.Time(end))
	}
	a.Next = -1
	if at != never {
		a.Next = max(0, time.Duration(at-a.Now)*time.Microsecond)
	}
}

// nextDue returns when a task will be due that is not due yet.
func (sh *shard) nextDue() store.Time {
	at := never
	if next, ok := sh.waiting.Next(); ok {
		at = store.Time(next)
	}
	for _, k := range sh.kinds {
		if k.mark.at > sh.now {
			at = min(at, k.mark.at)
		}
	}
	return at
}
