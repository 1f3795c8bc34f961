package memstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
	"github.com/tickless/tickless/durable/store/waiters"
)

// DefaultShards is the number of shards without [WithShards].
const DefaultShards = 1

// A Store keeps tasks in memory. Make one with [New].
type Store struct {
	clock     clock.Clock
	wallClock clock.Wall // nil if clock.Now is the time of day too
	started   time.Time  // Moment.Steady counts from then
	shards    []*shard
	// wallCanChange says whether the wall clock can be set.
	wallCanChange bool
	waiters       waiters.Waiters
}

var _ store.Store = (*Store)(nil)

// An Option changes how [New] makes a Store.
type Option interface{ apply(*config) }

type config struct {
	clock  clock.Clock
	shards int
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithClock sets the clock of the Store and its workers. The default is [clock.System].
// It panics if c is nil.
func WithClock(c clock.Clock) Option {
	if c == nil {
		panic("memstore: WithClock: nil Clock")
	}
	return option(func(x *config) { x.clock = c })
}

// WithShards sets the number of shards. The default is [DefaultShards]. It panics unless
// n is a power of two from 1 to 1024.
func WithShards(n int) Option {
	if n <= 0 || n > 1024 || n&(n-1) != 0 {
		panic(fmt.Sprintf("memstore: WithShards: the number of shards must be a power of two up to 1024, got %d", n))
	}
	return option(func(x *config) { x.shards = n })
}

// New returns an empty Store.
func New(opts ...Option) *Store {
	c := config{clock: clock.System(), shards: DefaultShards}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("memstore: New: option %d is nil", i+1))
		}
		o.apply(&c)
	}
	s := &Store{clock: c.clock, started: c.clock.Now(), shards: make([]*shard, c.shards)}
	s.wallClock, _ = c.clock.(clock.Wall)
	inBubble := s.started == s.started.Round(0) // a bubble's clock has no monotonic time, and is never set
	s.wallCanChange = s.wallClock != nil || c.clock == clock.System() && !inBubble
	for i := range s.shards {
		s.shards[i] = newShard()
	}
	return s
}

// Close closes the Store and discards its tasks. Later calls return [store.ErrClosed].
// Close returns nil.
func (s *Store) Close() error {
	s.waiters.Close()
	return nil
}

// Clock returns the Store's clock, which its workers follow.
func (s *Store) Clock() clock.Clock { return s.clock }

// Shards returns the number of shards.
func (s *Store) Shards() int { return len(s.shards) }

// Now returns the time of day.
func (s *Store) Now(ctx context.Context, _ int) (store.Time, error) {
	at, err := s.readClock()
	return at.Wall, cmp.Or(s.checkOpen(ctx), err)
}

// readClock rounds down, so that no task is due early. A panic of the clock becomes an
// error, before anything changes.
func (s *Store) readClock() (at machine.Moment, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("memstore: panic in the clock: %v: %w", v, store.ErrNotDone)
		}
	}()
	now := s.clock.Now()
	at = machine.Moment{Wall: store.Time(now.UnixMicro()), Steady: now.Sub(s.started)}
	if s.wallClock != nil {
		at.Wall = store.Time(s.wallClock.Wall().UnixMicro())
	}
	return at, nil
}

// maxSleep limits Answer.Next if the wall clock can be set, so that workers notice a
// change of the clock.
const maxSleep = time.Minute

// withShard calls f under the shard's lock, and wakes waiting workers if needed.
func (s *Store) withShard(ctx context.Context, shardIndex int, f func(sh *shard, at machine.Moment)) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	sh := s.shards[shardIndex]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	at, err := s.readClock()
	if err != nil {
		return err
	}
	wakesBefore := sh.numbers.Wakes
	f(sh, at)
	if sh.numbers.Wakes != wakesBefore {
		s.waiters.Wake(shardIndex)
	}
	return nil
}

// Change carries out a command.
func (s *Store) Change(ctx context.Context, shardIndex int, st store.Stamp, c store.Command) (outcomes []store.Outcome, err error) {
	if err := c.Check(&st); err != nil {
		return nil, err
	}
	c.Items = machine.CopyItems(c.Items)
	callErr := s.withShard(ctx, shardIndex, func(sh *shard, at machine.Moment) { outcomes, err = machine.Change(sh, at, &st, &c) })
	return outcomes, cmp.Or(callErr, err)
}

// Do carries out a round.
func (s *Store) Do(ctx context.Context, shardIndex int, st store.Stamp, r store.Round) (a store.Answer, err error) {
	if err := r.Check(&st); err != nil {
		return a, err
	}
	callErr := s.withShard(ctx, shardIndex, func(sh *shard, at machine.Moment) { a, err = machine.Do(sh, at, &st, &r) })
	if s.wallCanChange {
		a.Next = min(a.Next, maxSleep)
	}
	return a, cmp.Or(callErr, err)
}

// Wait first calls wake once for each shard, so that no earlier change is missed.
func (s *Store) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	return s.waiters.Wait(ctx, shards, wake)
}

func (s *Store) checkOpen(ctx context.Context) error {
	if s.waiters.Closed() {
		return store.ErrClosed
	}
	return store.Ended(ctx)
}

// Check describes the Store. There is nothing to check.
func (s *Store) Check(ctx context.Context) (store.Health, error) {
	return store.Health{
		Store:    "memory of this process",
		Warnings: []string{"tasks are kept in memory, and are lost when the process ends"},
	}, s.checkOpen(ctx)
}
