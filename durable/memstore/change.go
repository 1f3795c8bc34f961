package memstore

import (
	"bytes"
	"context"
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// Change carries out a command.
func (s *Store) Change(ctx context.Context, shard int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if err := c.Check(&st); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	sh := s.shards[shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	again, err := sh.admit(&st, now)
	if err != nil {
		return nil, err
	}
	if again != nil {
		return slices.Clone(again.outcomes), nil
	}
	sh.advance(now)
	var out []store.Outcome
	switch c.Op {
	case store.Pause, store.Resume:
		sh.pause(c.Op == store.Pause)
	default:
		out = make([]store.Outcome, len(c.Items))
		for i := range c.Items {
			out[i] = sh.change(&c, &c.Items[i], now)
		}
	}
	sh.remember(&st, &sender{outcomes: slices.Clone(out)}, now)
	return out, nil
}

func (sh *shard) pause(on bool) {
	sh.paused = on
	if !on {
		sh.s.wake(sh.index)
	}
}

func (sh *shard) change(c *store.Command, x *store.Item, now store.Time) store.Outcome {
	t := sh.tasks[x.ID]
	at := x.When.From(now)
	switch c.Op {
	case store.Schedule:
		return sh.schedule(t, x, at, c.Keep)
	case store.Reschedule:
		return sh.reschedule(t, x, at)
	case store.Cancel:
		return sh.cancel(t)
	case store.Requeue:
		return sh.requeue(t, x, at, now)
	case store.Import:
		return sh.take(t, x.Entry, now)
	default:
		return sh.purge(t)
	}
}

// own returns a task whose record is the store's: the caller may change its own.
func own(t store.Task) store.Task {
	t.Record = bytes.Clone(t.Record)
	return t
}

func (sh *shard) schedule(t *task, x *store.Item, at store.Time, keep store.Keep) store.Outcome {
	keeps := func(there store.Time) bool {
		return keep == store.KeepEarlier && at >= there || keep == store.KeepLater && at <= there
	}
	item := own(x.Task)
	switch {
	case t == nil:
		sh.fresh(sh.add(item), at)
		return store.Created
	case keep == store.KeepAny:
		return store.Kept
	case t.State == store.Pending && keeps(t.At):
		return store.Kept
	case t.State == store.Running && t.Following && keeps(t.Next):
		return store.Kept
	case t.State == store.Running:
		t.NextTask, t.Following, t.Next = &item, true, at
		return store.Following
	}
	sh.remove(t)
	t.Task = item
	sh.fresh(t, at)
	return store.Replaced
}

func (sh *shard) reschedule(t *task, x *store.Item, at store.Time) store.Outcome {
	switch {
	case t == nil || t.State == store.Dead:
		return store.Absent
	case t.State == store.Running:
		next := t.Task
		if t.NextTask != nil {
			next = *t.NextTask
		}
		if next.Renew(x.Generation) {
			t.NextTask = &next
		}
		t.Following, t.Next = true, at
		return store.Following
	}
	sh.remove(t)
	if t.Attempts == 0 && t.Crashes == 0 {
		t.Due = at
		t.Renew(x.Generation)
	}
	sh.wait(t, at)
	return store.Moved
}

func (sh *shard) cancel(t *task) store.Outcome {
	switch {
	case t == nil || t.State == store.Dead:
		return store.Absent
	case t.State == store.Running:
		if !t.Stopping {
			sh.n.Cancelled++
		}
		t.Stopping, t.Following, t.Next, t.NextTask = true, false, 0, nil
		return store.Stopping
	}
	sh.n.Cancelled++
	sh.remove(t)
	sh.forget(t)
	return store.Removed
}

func (sh *shard) requeue(t *task, x *store.Item, at, now store.Time) store.Outcome {
	if t == nil || t.State != store.Dead {
		return store.Absent
	}
	sh.remove(t)
	if t.ID == store.DeadID(store.KeyOf(t.ID)) {
		sh.forget(t)
		single := t.Task
		single.Schedule = ""
		single.ID = store.SingleID(store.KeyOf(t.ID), t.Due)
		for free := now; sh.tasks[single.ID] != nil; free++ { // in a test no time may have passed
			single.ID = store.SingleID(store.KeyOf(t.ID), free)
		}
		t = sh.add(single)
	}
	t.Renew(x.Generation)
	sh.fresh(t, at)
	return store.Moved
}

// take takes over an entry of another store.
func (sh *shard) take(t *task, e *store.Entry, now store.Time) store.Outcome {
	if t != nil {
		return store.Kept
	}
	t = sh.add(own(e.Task))
	t.Due, t.Attempts, t.Crashes, t.Runs, t.Failures = e.Due, e.Attempts, e.Crashes, e.Runs, slices.Clone(e.Failures)
	switch {
	case e.State == store.Dead:
		t.State, t.At = store.Dead, e.At
		sh.dead++
	case e.Following:
		if e.NextTask != nil {
			t.Task = own(*e.NextTask)
		}
		sh.fresh(t, e.Next)
	case e.State == store.Running:
		sh.wait(t, now)
	default:
		sh.wait(t, e.At)
	}
	return store.Created
}

func (sh *shard) purge(t *task) store.Outcome {
	if t == nil || t.State != store.Dead {
		return store.Absent
	}
	sh.remove(t)
	sh.forget(t)
	return store.Removed
}
