package memstore

import (
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// Reopened moves what s has to a new Store, and closes s: what a store does that
// outlives its process, so that the tests of that are tested too.
func Reopened(s *Store, opts ...Option) *Store {
	to := New(opts...)
	for i, old := range s.shards {
		sh := to.shards[i]
		sh.fence = old.fence
		sh.paused = old.paused
		sh.n = old.n
		sh.leases = newWheel(0) // some may be over by now
		for name, x := range old.senders {
			sh.senders[name] = x
		}
		for _, x := range old.inOrder() {
			t := sh.add(x.Task)
			switch t.Entry = x.entry(); t.State {
			case store.Pending:
				sh.wait(t, t.At)
			case store.Running:
				sh.run(t, t.At)
			case store.Dead:
				sh.dead++
			}
		}
	}
	_ = s.Close()
	return to
}

// inOrder returns the tasks in the order in which they came.
func (sh *shard) inOrder() []*task {
	var all []*task
	for _, t := range sh.tasks {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *task) int { return int(a.arrival) - int(b.arrival) })
	return all
}
