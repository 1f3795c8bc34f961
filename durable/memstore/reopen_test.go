package memstore

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tickless/tickless/durable/store/machine"
)

// Reopened moves the contents of s to a new Store and closes s, for the tests of storetest
// that reopen a store.
func Reopened(s *Store, opts ...Option) *Store {
	to := New(opts...)
	for i, old := range s.shards {
		sh := to.shards[i]
		sh.numbers = old.numbers
		sh.limits = old.limits
		for name, x := range old.senders {
			sh.senders[name] = x
		}
		for _, x := range slices.SortedFunc(maps.Values(old.tasks), func(a, b *task) int {
			return cmp.Or(comparePositions(a.position, b.position), cmp.Compare(a.ID, b.ID))
		}) {
			t := sh.Add(x.ID)
			*t = machine.Task{Entry: machine.CopyEntry(x.Entry), Lease: x.Lease, Parked: x.Parked}
			sh.Changed(t)
		}
		for k, x := range old.groupStates {
			sh.PutGroup(k, x.Group)
		}
	}
	_ = s.Close()
	return to
}
