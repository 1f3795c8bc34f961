package memstore

import (
	"bytes"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// claim gives the worker what is due.
func (sh *shard) claim(r *store.Round, now store.Time) []store.Claimed {
	if sh.paused {
		return nil
	}
	// Tokens do not go back, whatever the clock does.
	sh.fence = max(sh.fence, int64(now))
	var out []store.Claimed
	for len(out) < r.Claim.Max {
		t := sh.oldest(&r.Claim)
		if t == nil {
			break
		}
		sh.remove(t)
		sh.fence++
		t.Token = sh.fence
		t.Attempts++
		sh.run(t, now.Add(r.Lease))
		out = append(out, t.claimed())
	}
	sh.n.Claimed += int64(len(out))
	return out
}

// oldest returns the task that has been due longest of those that a claim may get, or
// nil.
func (sh *shard) oldest(c *store.Claim) *task {
	var first *task
	for k, q := range sh.due {
		if knows(c, k) && (first == nil || q.first().before(first)) {
			first = q.first()
		}
	}
	return first
}

func knows(c *store.Claim, k kind) bool {
	return slices.Contains(c.Handlers, k.handler) && (k.schedule == "" || slices.Contains(c.Schedules, k.schedule))
}

func (t *task) claimed() store.Claimed {
	x := store.Claimed{Task: t.Task, Token: t.Token, Due: t.Due, Attempts: t.Attempts - 1, Crashes: t.Crashes}
	x.Record = bytes.Clone(x.Record)
	return x
}

// next says when the worker should come again.
func (sh *shard) next(a *store.Answer, r *store.Round) {
	at, left := never, false
	if !sh.paused {
		left = r.Claim.Asked && sh.oldest(&r.Claim) != nil
		if next, ok := sh.waiting.Next(); ok {
			at = store.Time(next)
		}
	}
	if r.Claim.Asked {
		// What is left for this worker says nothing of the others, who sleep longer.
		sh.told = max(sh.told, at)
	}
	if left {
		if r.Claim.Full {
			sh.s.wake(sh.index)
		}
		at = a.Now
	}
	if end, ok := sh.leases.Next(); ok {
		at = min(at, store.Time(end))
	}
	a.Next = -1
	if at != never {
		a.Next = max(0, time.Duration(at-a.Now)*time.Microsecond)
	}
}
