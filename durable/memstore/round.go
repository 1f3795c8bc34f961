package memstore

import (
	"context"
	"slices"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timingwheel"
)

// Do carries out a round. When a worker leaves nobody has to take its place: all the
// others watch every shard.
func (s *Store) Do(ctx context.Context, shard int, st store.Stamp, r store.Round) (store.Answer, error) {
	if err := r.Check(&st); err != nil {
		return store.Answer{}, err
	}
	if err := s.begin(ctx); err != nil {
		return store.Answer{}, err
	}
	sh := s.shards[shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	before, err := sh.admit(&st, now)
	if err != nil {
		return store.Answer{}, err
	}
	sh.advance(now)
	if before != nil {
		return sh.repeat(before, &r, now), nil
	}
	a := store.Answer{Now: now}
	for i := range r.Reports {
		a.Receipts = append(a.Receipts, sh.finish(&r.Reports[i], now))
	}
	for _, h := range r.Extend {
		a.Leases = append(a.Leases, sh.extend(h, now.Add(r.Lease)))
	}
	kept := &sender{answer: store.Answer{Receipts: slices.Clone(a.Receipts), Leases: slices.Clone(a.Leases)}}
	if r.Claim.Asked {
		sh.workers[st.Sender] = r.Claim
		sh.expire(&r, now)
		a.Tasks = sh.claim(&r, now)
		for i := range a.Tasks {
			kept.holds = append(kept.holds, store.Hold{ID: a.Tasks[i].ID, Token: a.Tasks[i].Token})
		}
	}
	if r.Leave {
		delete(sh.workers, st.Sender)
	}
	sh.next(&a, &r)
	sh.remember(&st, kept, now)
	return a, nil
}

// repeat is a round that was carried out before.
func (sh *shard) repeat(x *sender, r *store.Round, now store.Time) store.Answer {
	a := store.Answer{Now: now, Receipts: slices.Clone(x.answer.Receipts), Leases: slices.Clone(x.answer.Leases)}
	for _, h := range x.holds {
		if t := sh.held(h); t != nil && t.At > now {
			sh.extend(h, now.Add(r.Lease))
			a.Tasks = append(a.Tasks, t.claimed())
		}
	}
	sh.next(&a, r)
	return a
}

// held returns the task that has the lease, or nil.
func (sh *shard) held(h store.Hold) *task {
	t := sh.tasks[h.ID]
	if t == nil || t.State != store.Running || t.Token != h.Token {
		return nil
	}
	return t
}

func (sh *shard) extend(h store.Hold, until store.Time) store.Lease {
	t := sh.held(h)
	if t == nil {
		return store.Lost
	}
	sh.leases.Remove(t.place)
	sh.run(t, until)
	if t.Stopping {
		return store.HeldStopping
	}
	return store.Held
}

// expire takes back leases that have run out.
func (sh *shard) expire(r *store.Round, now store.Time) {
	var out [64]timingwheel.Expired[*task]
	for more := true; more; {
		var n int
		n, more = sh.leases.Advance(int64(now), out[:])
		for _, x := range out[:n] {
			sh.crashed(x.Value, r.MaxCrashes, now)
		}
	}
}

// crashed is for a task whose lease has run out.
func (sh *shard) crashed(t *task, most int, now store.Time) {
	sh.n.Crashed++
	sh.remove(t)
	if sh.follow(t) {
		return
	}
	t.Crashes++
	if t.Crashes >= most && !t.Repeats() {
		sh.bury(t, now, store.TextPoison)
		return
	}
	t.Failures = store.Note(t.Failures, store.Failure{Attempt: t.Attempts, Time: now, Text: store.TextCrashed})
	sh.wait(t, now)
}

// follow ends a task that was scheduled again, or cancelled, while it ran. It returns
// false for others.
func (sh *shard) follow(t *task) bool {
	switch {
	case t.Following:
		if t.NextTask != nil {
			t.Task = *t.NextTask
		}
		sh.fresh(t, t.Next)
	case t.Stopping:
		sh.forget(t)
	default:
		return false
	}
	return true
}
