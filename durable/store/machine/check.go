package machine

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// Stats returns the shard's numbers. It takes O(n) for n Kinds of due tasks.
func Stats(index Index, now store.Time) store.Stats {
	n := index.Numbers()
	st := store.Stats{Pending: n.Pending, Running: n.Running, Dead: n.Dead, Past: n.Past, Paused: n.Paused, Counters: n.Counters}
	if n.Past > 0 {
		st.Past = max(0, n.Past-index.Expired(now))
	}
	if n.Limits > 0 {
		for h, l := range index.Limits() {
			if l.Limit != (store.Limit{}) {
				if st.Limits == nil {
					st.Limits = make(map[string]store.Limit)
				}
				st.Limits[h] = l.Limit
			}
			if l.Paused != 0 {
				if st.PausedHandlers == nil {
					st.PausedHandlers = make(map[string]store.HandlerPause)
				}
				st.PausedHandlers[h] = store.HandlerPause{Since: l.Paused, Note: l.Note}
			}
		}
	}
	workers := index.Workers(now)
	for _, k := range index.Overdue(now) {
		st.Overdue += k.Tasks
		st.Late = max(st.Late, now.Sub(k.First))
		hasWorker := false
		for _, w := range workers {
			hasWorker = hasWorker || !w.Lost && w.Claim.Knows(k.Handler, k.Schedule)
		}
		if !hasWorker {
			st.Unknown += k.Tasks
		}
	}
	return st
}

// Workers returns the shard's workers.
func Workers(index Index, now store.Time) (workers []store.Worker) {
	for _, x := range index.Workers(now) {
		c := x.Claim
		workers = append(workers, store.Worker{Number: c.Worker, About: c.About, Handlers: slices.Clone(c.Handlers), Schedules: slices.Clone(c.Schedules),
			Seen: x.Seen, Lease: c.Lease, Lost: x.Lost})
	}
	return workers
}

// InRange reports whether the times and counts of a task are possible. A store must not
// return others: workers send them back.
func (t *Task) InRange() bool {
	isTime := func(t store.Time) bool { return t >= 0 && t <= store.Farthest }
	isCount := func(n int) bool { return n >= 0 && n <= math.MaxInt32 }
	return t.State >= store.Pending && t.State <= store.Past && isTime(t.At) && isTime(t.Due) && t.Next >= 0 && t.Next <= store.Never &&
		isCount(t.Attempts) && isCount(t.Crashes) && isCount(t.Runs) && t.Token >= 0 && t.Lease >= 0 && t.Version >= 0 && t.Worker >= 0 && t.Worker <= store.MaxWorker
}

// Check returns an error if the fields of the task contradict each other or n, the
// shard's numbers.
func (t *Task) Check(n *Numbers) error {
	isRunning := t.State == store.Running
	switch {
	case t.ID == "" || t.Handler == "" || t.State < store.Pending || t.State > store.Past:
		return errors.New("no id, no handler or no state")
	case t.Version < 0 || t.Version > max(1, n.Fence):
		return fmt.Errorf("version %d; the last is %d", t.Version, n.Fence)
	case isRunning != (t.Token > 0) || isRunning != (t.Lease > 0) || t.Token > n.Fence:
		return fmt.Errorf("state %v with token %d; the last token is %d", t.State, t.Token, n.Fence)
	case t.State > store.Running && t.Paused || t.Once && !t.Paused:
		return errors.New("unexpected pause")
	case t.Parked && (t.State != store.Pending || t.Group == ""):
		return errors.New("parked, but not pending in a group")
	case !isRunning && t.Stopping || t.State > store.Running && t.Following || !t.Following && t.NextTask != nil:
		return errors.New("unexpected next task")
	}
	return nil
}
