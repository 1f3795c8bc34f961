package memstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/internal/bubble"
)

// DefaultShards is the number of shards without [WithShards].
const DefaultShards = 4

// A Store keeps tasks in memory. Make one with [New].
type Store struct {
	clock clock.Clock
	// epoch is when the Store was made. Its time is what has passed since, by the
	// clock's monotonic reading, so that a change of the wall clock does not matter.
	epoch  time.Time
	shards []*shard
	closed atomic.Bool
	// system: its clock is the system's, and bubbled: that of a testing/synctest bubble.
	system, bubbled bool

	mu      sync.Mutex
	waiters map[*waiter]struct{}
}

var _ store.Store = (*Store)(nil)

// An Option changes how [New] makes a Store.
type Option func(*config)

type config struct {
	clock  clock.Clock
	shards int
}

// WithClock has the Store, and the workers on it, follow a clock. The default is
// [clock.System]. It panics if c is nil.
func WithClock(c clock.Clock) Option {
	if c == nil {
		panic("memstore: WithClock with a nil Clock")
	}
	return func(x *config) { x.clock = c }
}

// WithShards sets the number of shards. The default is [DefaultShards]. It panics unless
// n is a power of two from 1 to 1024.
func WithShards(n int) Option {
	if n <= 0 || n > 1024 || n&(n-1) != 0 {
		panic(fmt.Sprintf("memstore: WithShards: the number of shards must be a power of two up to 1024, it is %d", n))
	}
	return func(x *config) { x.shards = n }
}

// New returns an empty Store.
func New(opts ...Option) *Store {
	c := config{clock: clock.System(), shards: DefaultShards}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("memstore: New: option %d is nil", i+1))
		}
		o(&c)
	}
	s := &Store{clock: c.clock, epoch: c.clock.Now(), waiters: make(map[*waiter]struct{})}
	s.system, s.bubbled = c.clock == clock.System(), bubble.Inside()
	s.shards = make([]*shard, c.shards)
	for i := range s.shards {
		s.shards[i] = newShard(s, i)
	}
	return s
}

// Close ends the Store: every call returns [store.ErrClosed] from now on, and Wait
// returns. The tasks are gone with it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Swap(true) {
		return nil
	}
	for w := range s.waiters {
		close(w.closed)
	}
	return nil
}

// Clock returns the Store's clock, which its workers follow.
func (s *Store) Clock() clock.Clock { return s.clock }

// Shards returns the number of shards.
func (s *Store) Shards() int { return len(s.shards) }

// Now returns the Store's time.
func (s *Store) Now(ctx context.Context, shard int) (store.Time, error) {
	return s.now(), s.begin(ctx)
}

func (s *Store) now() store.Time {
	// Rounded down: a task is not due before its time.
	return store.Time(s.epoch.UnixMicro() + s.clock.Now().Sub(s.epoch).Microseconds())
}

// begin returns an error if a call may not begin.
func (s *Store) begin(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	if s.isElsewhere() {
		return errElsewhere
	}
	return store.Ended(ctx)
}

// isElsewhere reports whether the caller's time is years away from the Store's.
func (s *Store) isElsewhere() bool { return s.system && s.bubbled != bubble.Inside() }

var errElsewhere = fmt.Errorf("memstore: a Store is used inside a synctest bubble if it was made there, and else outside alone: %w", store.ErrNotDone)

// Check finds nothing wrong.
func (s *Store) Check(ctx context.Context) (store.Health, error) {
	return store.Health{
		Store:    "memory of this process",
		Warnings: []string{"tasks are kept in memory, and are gone with the process"},
	}, s.begin(ctx)
}
