package diskstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/store"
)

// A Store keeps tasks in a directory. [Open] opens one.
type Store struct {
	dir    string
	config config
	lock   io.Closer
	gate   *gate
	db     *pebble.DB
	shards []*shard
	// epoch and opened are when the store was opened, by the clock and by the wall.
	epoch, opened time.Time
	ahead         atomic.Int64 // how far the wall clock was set forward, if it was said
	// last is the time of the latest command before the store was opened.
	last store.Time

	// over is closed when nothing more is accepted, and failed before it if that is
	// since the disk failed, of which cause is the reason.
	over, failed chan struct{}
	overOnce     sync.Once
	failOnce     sync.Once
	cause        error

	// running are the Store's goroutines, and readers the calls that read.
	running sync.WaitGroup
	readers sync.WaitGroup
	reading sync.RWMutex // held by a call that becomes a reader, and by Close

	grouped   chan struct{} // has an element if a shard has written something
	syncs     atomic.Int64  // that were asked for and have not ended
	newestLog atomic.Int64  // the number of the newest file of the log

	finding sync.Mutex    // held while the files of the log are looked for
	looked  time.Time     // when that was; finding guards it, and later
	later   *time.Timer   // what puts an element into look
	look    chan struct{} // has one if tend is to look for them

	unsynced chan time.Time // of WithSync; has when the first was written that may not be synced
	flushed  chan struct{}  // has an element if the marker is to be written
	room     room

	placing sync.Mutex // held while a copy gets its name

	closing sync.Mutex
	closed  bool

	waiting sync.Mutex
	waiters map[*waiter]struct{}
}

var _ store.Store = (*Store)(nil)

// Clock returns the Store's clock, which its workers follow.
func (s *Store) Clock() clock.Clock { return s.config.clock }

// Shards returns the number of shards.
func (s *Store) Shards() int { return len(s.shards) }

// Now returns the Store's time.
func (s *Store) Now(ctx context.Context, shard int) (store.Time, error) {
	return s.now(), s.begin(ctx)
}

// begin returns an error if a call may not begin.
func (s *Store) begin(ctx context.Context) error {
	select {
	case <-s.failed: // the store is over in a moment, if it is not yet
		return notDone(s.why())
	case <-s.over:
		return notDone(s.why())
	default:
		return store.Ended(ctx)
	}
}

// why returns why the store is over.
func (s *Store) why() error {
	select {
	case <-s.failed:
		return s.cause
	default:
		return store.ErrClosed
	}
}

// notDone returns an error that wraps [store.ErrNotDone] as well.
func notDone(err error) error {
	if err == store.ErrClosed {
		return err
	}
	return fmt.Errorf("%w: %w", err, store.ErrNotDone)
}

// fail has the store do nothing more.
func (s *Store) fail(cause error) {
	s.failOnce.Do(func() {
		s.gate.shut.Store(true)
		s.cause = failed(cause)
		close(s.failed)
		s.end()
		what := "diskstore: the disk failed; the store has to be opened again"
		if errors.Is(s.cause, ErrDamaged) {
			what = "diskstore: the store is damaged"
		}
		s.config.log.Error(what, "dir", s.dir, "error", firstLine(cause.Error()))
	})
}

// end has the store accept nothing more.
func (s *Store) end() { s.overOnce.Do(func() { close(s.over) }) }

// Change carries out a command.
func (s *Store) Change(ctx context.Context, shard int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if err := c.Check(&st); err != nil {
		return nil, err
	}
	x := commandCalls.Get().(*call)
	x.stamp = st
	x.copyCommand(&c)
	defer x.free()
	if err := s.shards[shard].call(ctx, x); err != nil {
		return nil, err
	}
	return x.outcomes, nil
}

// Do carries out a round.
func (s *Store) Do(ctx context.Context, shard int, st store.Stamp, r store.Round) (store.Answer, error) {
	if err := r.Check(&st); err != nil {
		return store.Answer{}, err
	}
	x := &call{stamp: st, round: ownRound(&r)}
	if err := s.shards[shard].call(ctx, x); err != nil {
		return store.Answer{}, err
	}
	return x.answer, nil
}

// Check looks whether the store works, and at the clock. It reads nothing: [Store.Verify]
// does.
func (s *Store) Check(ctx context.Context) (store.Health, error) {
	s.now() // if nothing happens nobody else looks at the clock
	h := store.Health{Store: "directory " + s.dir}
	if every := s.config.every; every > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("what was acknowledged within %v, and the time that a sync takes, before a crash may be lost", every))
	}
	if by := time.Duration(s.ahead.Load()); by > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("the wall clock was set forward by %v; tasks are that late until the store is opened again", by.Round(time.Second)))
	}
	if by := s.behind(); by > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("the wall clock was set back by %v since the store was used before; what was to come after some time waits that much longer", by.Round(time.Second)))
	}
	if s.room.none.Load() {
		h.Warnings = append(h.Warnings, "the disk is full; nothing new is accepted")
	}
	return h, s.begin(ctx)
}
