package diskstore

import (
	"cmp"
	"slices"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timingwheel"
)

// round carries out a round. When a worker leaves nobody has to take its place: all the
// others watch every shard.
func (sh *shard) round(st *store.Stamp, r *store.Round) (store.Answer, error) {
	again, err := sh.admit(st, sh.now)
	if err != nil {
		return store.Answer{}, err
	}
	if again != nil {
		return sh.repeat(again, st, r), nil
	}
	a := store.Answer{Now: sh.now}
	for i := range r.Reports {
		a.Receipts = append(a.Receipts, sh.finish(&r.Reports[i]))
	}
	for _, h := range r.Extend {
		a.Leases = append(a.Leases, sh.extend(h, r))
	}
	if r.Claim.Asked {
		sh.workers[st.Sender] = r.Claim
		sh.expire(r)
		a.Tasks = sh.claim(st, r)
	}
	if r.Leave {
		delete(sh.workers, st.Sender)
	}
	sh.next(&a, r)
	sh.remember(st, appendAnswer(&a), sh.now)
	return a, nil
}

// repeat is a round that was carried out before.
func (sh *shard) repeat(x *sender, st *store.Stamp, r *store.Round) store.Answer {
	a := store.Answer{Now: sh.now}
	readAnswer(x.answer, &a)
	var got []*task
	if r.Claim.Asked {
		for _, t := range sh.tasks {
			if t.State == store.Running && t.sender == st.Sender && t.number == st.Number && t.At > sh.now {
				got = append(got, t)
			}
		}
	}
	slices.SortFunc(got, func(a, b *task) int { return cmp.Compare(a.Token, b.Token) })
	for _, t := range got {
		sh.load(t)
		sh.prolong(t, r)
		a.Tasks = append(a.Tasks, t.claimed())
	}
	sh.next(&a, r)
	return a
}

// held returns the task that has the lease, or nil. It may have to be loaded.
func (sh *shard) held(h store.Hold) *task {
	t := sh.tasks[h.ID]
	if t == nil || t.State != store.Running || t.Token != h.Token {
		return nil
	}
	return t
}

func (sh *shard) extend(h store.Hold, r *store.Round) store.Lease {
	t := sh.held(h)
	if t == nil {
		return store.Lost
	}
	sh.prolong(t, r)
	if t.Stopping {
		return store.HeldStopping
	}
	return store.Held
}

// prolong has a lease last from now on again.
func (sh *shard) prolong(t *task, r *store.Round) {
	sh.leases.Remove(t.place)
	sh.running--
	t.lease = r.Lease
	sh.run(t, sh.now.Add(r.Lease))
}

// expire takes back leases that have run out.
func (sh *shard) expire(r *store.Round) {
	var out [64]timingwheel.Expired[*task]
	for more := true; more; {
		var n int
		n, more = sh.leases.Advance(int64(sh.now), out[:])
		for _, x := range out[:n] {
			sh.crashed(x.Value, r.MaxCrashes)
		}
	}
}

// crashed is for a task whose lease has run out.
func (sh *shard) crashed(t *task, most int) {
	sh.Crashed++
	sh.load(t)
	sh.remove(t)
	if sh.follow(t) {
		return
	}
	t.Crashes++
	if t.Crashes >= most && !t.Repeats() {
		sh.bury(t, store.TextPoison)
		return
	}
	t.Failures = store.Note(t.Failures, store.Failure{Attempt: t.Attempts, Time: sh.now, Text: store.TextCrashed})
	sh.wait(t, sh.now)
}

// follow ends a task that was scheduled again, or cancelled, while it ran. It returns
// false for others.
func (sh *shard) follow(t *task) bool {
	switch {
	case t.Following:
		if t.NextTask != nil {
			t.Task = *t.NextTask
		} else {
			sh.load(t)
		}
		t.whole = true
		sh.fresh(t, t.Next)
	case t.Stopping:
		t.Stopping = false
	default:
		return false
	}
	return true
}
