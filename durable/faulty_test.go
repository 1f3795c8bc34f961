package durable_test

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/tickless/tickless/durable/store"
)

var errFault = errors.New("the connection has failed")

// faulty is a store behind a connection that fails.
type faulty struct {
	store.Store
	// lose says whether the answer to a command is lost. refuse says whether the
	// command itself is lost. A nil function means false.
	lose, refuse func() bool
	later        atomic.Pointer[func() bool] // another lose, for setLose during the test
	frozen       atomic.Bool                 // calls wait until their contexts end
	checks       atomic.Int32                // how many calls of Check fail
}

func (f *faulty) setLose(lose func() bool) { f.later.Store(&lose) }

func (f *faulty) arrives(ctx context.Context) error {
	if f.frozen.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if f.refuse != nil && f.refuse() {
		return errFault
	}
	return nil
}

func (f *faulty) returns() error {
	if later := f.later.Load(); later != nil && (*later)() || f.lose != nil && f.lose() {
		return errFault
	}
	return nil
}

func (f *faulty) Change(ctx context.Context, shard int, s store.Stamp, c store.Command) ([]store.Outcome, error) {
	if err := f.arrives(ctx); err != nil {
		return nil, err
	}
	out, err := f.Store.Change(ctx, shard, s, c)
	if lost := f.returns(); lost != nil {
		return nil, lost
	}
	return out, err
}

func (f *faulty) Do(ctx context.Context, shard int, s store.Stamp, r store.Round) (store.Answer, error) {
	if err := f.arrives(ctx); err != nil {
		return store.Answer{}, err
	}
	a, err := f.Store.Do(ctx, shard, s, r)
	if lost := f.returns(); lost != nil {
		return store.Answer{}, lost
	}
	return a, err
}

func (f *faulty) Check(ctx context.Context) (store.Health, error) {
	if f.checks.Add(-1) >= 0 {
		return store.Health{}, errFault
	}
	if err := f.arrives(ctx); err != nil {
		return store.Health{}, err
	}
	return f.Store.Check(ctx)
}

// ratio returns a function that returns true n times in m, and never more than 20 times
// in a row.
func ratio(n, m uint64) func() bool {
	var x atomic.Uint64
	return func() bool {
		i := x.Add(1) * 0x9e3779b97f4a7c15
		return i>>40%m < n
	}
}
