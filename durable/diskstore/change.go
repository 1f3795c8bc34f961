package diskstore

import (
	"bytes"

	"github.com/tickless/tickless/durable/store"
)

// change carries out a command of about size bytes.
func (sh *shard) change(st *store.Stamp, c *store.Command, size int) ([]store.Outcome, error) {
	again, err := sh.admit(st, sh.now)
	if err != nil {
		return nil, err
	}
	if again != nil {
		return readOutcomes(again.answer), nil
	}
	if needsRoom(c) && !sh.s.hasRoom(size) {
		return nil, store.ErrFull
	}
	var out []store.Outcome
	switch c.Op {
	case store.Pause, store.Resume:
		if sh.paused = c.Op == store.Pause; !sh.paused {
			sh.s.wake(sh.index)
		}
	default:
		out = make([]store.Outcome, len(c.Items))
		for i := range c.Items {
			out[i] = sh.changeOne(c, &c.Items[i])
		}
	}
	sh.remember(st, appendOutcomes(out), sh.now)
	return out, nil
}

func (sh *shard) changeOne(c *store.Command, x *store.Item) store.Outcome {
	t := sh.find(x.ID)
	at := x.When.From(sh.now)
	switch c.Op {
	case store.Schedule:
		return sh.schedule(t, x, at, c.Keep)
	case store.Reschedule:
		return sh.reschedule(t, x, at)
	case store.Cancel:
		return sh.cancel(t)
	case store.Requeue:
		return sh.requeue(t, x, at)
	case store.Import:
		return sh.take(t, x.Entry)
	default:
		return sh.purge(t)
	}
}

// keeps reports whether a task that is due at a time stays, and not one at another.
func keeps(keep store.Keep, there, at store.Time) bool {
	return keep == store.KeepEarlier && at >= there || keep == store.KeepLater && at <= there
}

func (sh *shard) schedule(t *task, x *store.Item, at store.Time, keep store.Keep) store.Outcome {
	if t == nil {
		sh.fresh(sh.add(x.Task), at)
		return store.Created
	}
	running := t.State == store.Running
	switch {
	case keep == store.KeepAny,
		t.State == store.Pending && keeps(keep, t.At, at),
		running && t.Following && keeps(keep, t.Next, at):
		return store.Kept
	case running:
		next := x.Task
		next.Record = bytes.Clone(next.Record) // that of the call is used again
		t.NextTask, t.Following, t.Next = &next, true, at
		sh.touch(t)
		return store.Following
	}
	sh.remove(t)
	t.Task = x.Task
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
		sh.touch(t)
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
			sh.Cancelled++
		}
		t.Stopping, t.Following, t.Next, t.NextTask = true, false, 0, nil
		sh.touch(t)
		return store.Stopping
	}
	sh.Cancelled++
	sh.remove(t)
	return store.Removed
}

func (sh *shard) requeue(t *task, x *store.Item, at store.Time) store.Outcome {
	if t == nil || t.State != store.Dead {
		return store.Absent
	}
	sh.remove(t)
	if key := store.KeyOf(t.ID); t.ID == store.DeadID(key) {
		single := t.Task
		single.Schedule = ""
		single.ID = store.SingleID(key, t.Due)
		for free := sh.now; sh.find(single.ID) != nil; free++ { // in a test no time may have passed
			single.ID = store.SingleID(key, free)
		}
		t = sh.add(single)
	}
	t.Renew(x.Generation)
	sh.fresh(t, at)
	return store.Moved
}

// take takes over an entry of another store.
func (sh *shard) take(t *task, e *store.Entry) store.Outcome {
	if t != nil {
		return store.Kept
	}
	t = sh.add(e.Task)
	t.Due, t.Attempts, t.Crashes, t.Runs, t.Failures = e.Due, e.Attempts, e.Crashes, e.Runs, e.Failures
	switch {
	case e.State == store.Dead:
		sh.rest(t, e.At)
	case e.Following:
		if e.NextTask != nil {
			t.Task = *e.NextTask
		}
		sh.fresh(t, e.Next)
	case e.State == store.Running:
		sh.wait(t, sh.now)
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
	return store.Removed
}
