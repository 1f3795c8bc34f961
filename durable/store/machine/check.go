package machine

import (
	"errors"
	"fmt"

	"github.com/tickless/tickless/durable/store"
)

// Stats returns the shard's numbers. O(n) in the kinds of tasks that are due.
func Stats(ix Index, now store.Time) store.Stats {
	n := ix.Numbers()
	st := store.Stats{Pending: n.Pending, Running: n.Running, Dead: n.Dead, Paused: n.Paused, Counters: n.Counters}
	workers := ix.Workers()
	for _, k := range ix.Overdue(now) {
		st.Overdue += k.Tasks
		st.Late = max(st.Late, now.Sub(k.First))
		known := false
		for _, c := range workers {
			known = known || c.Knows(k.Handler, k.Schedule)
		}
		if !known {
			st.Unknown += k.Tasks
		}
	}
	return st
}

// Check returns an error if the machine never leaves a task so, with those numbers.
func (t *Task) Check(n *Numbers) error {
	is := func(x bool) int {
		if x {
			return 1
		}
		return 0
	}
	inRange := func(t store.Time) bool { return t >= 0 && t <= store.Farthest }
	switch {
	case t.ID == "" || t.Handler == "" || t.State < store.Pending || t.State > store.Dead:
		return errors.New("it has no id, no handler or no state")
	case !inRange(t.At) || !inRange(t.Due) || !inRange(t.Next):
		return errors.New("a time is out of range")
	case t.Attempts < 0 || t.Crashes < 0 || t.Runs < 0 || len(t.Failures) > store.MaxFailures || len(t.Record) > store.MaxRecord:
		return errors.New("what was tried, or the record, is out of range")
	case (t.State == store.Running) != (t.Token > 0) || t.Token > n.Fence || is(t.Lease > 0) != is(t.Token > 0):
		return fmt.Errorf("it is %v with the token %d of %d", t.State, t.Token, n.Fence)
	case t.State != store.Running && (t.Stopping || t.Following) || !t.Following && (t.Next != 0 || t.NextTask != nil):
		return errors.New("something follows it that must not")
	case t.NextTask != nil && t.NextTask.ID != t.ID:
		return errors.New("what follows it has another id")
	}
	return nil
}
