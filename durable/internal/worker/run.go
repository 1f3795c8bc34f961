package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// A Config is what the Loops of a Run share. They call its functions on their goroutines.
type Config struct {
	Counters *Counters
	// Claimed returns the attempt at a claimed task. If it has ended already, early is the
	// report on it. now is the store's time.
	Claimed func(x *store.Claimed, now store.Time) (a *Attempt, early *Report)
	// Paused is told what is paused, after each claim.
	Paused func(shard int, store bool, handlers []string)
	// LogError gets the error of a command that is sent again, and Fail a permanent error.
	LogError, Fail func(err error)

	Store           store.Store
	Commands        context.Context // of the commands to the store
	Pool            *places.Pool
	PlacesPerClaim  int // the most that a Loop reserves, so that places remain for others
	Now             func() time.Time
	Timers          *timer.Scheduler
	HasVirtualClock bool           // Now is not the system's clock
	Random          *random.Source // nil except in a simulation

	Name       string // the senders' names begin with it
	Number     int64  // store.Round.Worker
	About      string // store.Round.About
	Lease      time.Duration
	MaxCrashes int
	Handlers   []string
	Schedules  []string
}

// A Run has the Loops of one run of a Worker, one for each shard.
type Run struct {
	Config
	stopping atomic.Bool
	loops    []*Loop
}

// NewRun returns a Run whose Loops have not started.
func NewRun(c Config) *Run {
	r := &Run{Config: c}
	for shard := range c.Store.Shards() {
		r.loops = append(r.loops, newLoop(r, shard))
	}
	return r
}

// Counters count what the Loops do.
type Counters struct{ Claimed, Errors, Claims, Empty, Wakeups atomic.Int64 }

// A Call is what the Worker makes of an attempt.
type Call interface {
	// Run calls the handler, on a goroutine of its own, and then [Attempt.End].
	Run()
	// Settled gets the store's answer to the report. now is the store's time.
	Settled(r *Report, receipt store.Receipt, now store.Time)
	// GivenUp says that the lease is given up, because the handler does not return.
	GivenUp()
}

// The causes of the contexts of handlers. Package durable documents them.
var (
	ErrClosed    = errors.New("durable: the worker is closed")
	ErrLeaseLost = errors.New("durable: the lease was lost")
	ErrCancelled = errors.New("durable: the task was cancelled")
)

// Start calls start with the work of each Loop, which needs a goroutine of its own.
func (r *Run) Start(start func(work func())) {
	for _, l := range r.loops {
		start(l.work)
	}
}

// Stop makes the Loops start no more attempts. The caller calls SetPhase next.
func (r *Run) Stop() { r.stopping.Store(true) }

// SetPhase sets the phase of the shutdown.
func (r *Run) SetPhase(p Phase) {
	for _, l := range r.loops {
		l.setPhase(p)
	}
}

// Unconfirmed returns how many attempts may still have a lease. The Loops must have ended.
func (r *Run) Unconfirmed() (n int) {
	for _, l := range r.loops {
		n += l.leaseCount
	}
	return n
}

// ExtendLeaseNow makes the Loop of a shard extend the lease of the task id immediately, if it
// has that lease.
func (r *Run) ExtendLeaseNow(shard int, id string) { r.loops[shard].extendLeaseNow(id) }

// Sleep waits for d. If the context ends first, it returns the context's error.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// AnswerTimeout returns how long a Worker waits for the store's answer before it repeats a
// command.
func AnswerTimeout(lease time.Duration) time.Duration { return max(lease/3, time.Second) }

// IsPermanent reports whether an error of the store is permanent.
func IsPermanent(err error) bool {
	return errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnfit)
}
