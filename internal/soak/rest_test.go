package soak

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// A run is several kinds, each with a ledger, that work and pause in turn. During a pause
// nothing is pending. If memory, goroutines or descriptors grow from pause to pause,
// there is a leak.
type run struct {
	kinds      []kind
	ledgers    []*ledger
	schedulers []*timer.Scheduler
	longest    time.Duration

	// gate is held for reading by steps, and for writing while the run rests.
	gate sync.RWMutex
	// end is closed at the last rest.
	end chan struct{}
}

const (
	// mostRests is how often a run of half an hour rests: for flat, three times in each
	// third.
	mostRests = 9
	// longLull is how long memory is measured. The shards of a Scheduler give memory back
	// up to ten seconds after their last timer has gone.
	longLull = 15 * time.Second
)

// rests returns how often a run pauses, and for how long after nothing is pending. The
// run works for at least half of the time.
func rests(length, longest time.Duration) (n int, lull time.Duration) {
	if length < time.Minute {
		return 2, 0 // nothing is measured
	}
	return min(mostRests, max(1, int(length/(2*(longest+longLull))))), longLull
}

// work has kind i work until the end.
func (r *run) work(i int, seed uint64, pause time.Duration) {
	rng := rand.New(rand.NewPCG(seed, uint64(i)))
	for r.steps(i, rng) {
		time.Sleep(pause + time.Duration(rng.Int64N(int64(pause))))
	}
}

// steps reports false at the end.
func (r *run) steps(i int, rng *rand.Rand) bool {
	r.gate.RLock()
	defer r.gate.RUnlock()
	if isClosed(r.end) {
		return false
	}
	for range 3 {
		r.kinds[i].step(r.ledgers[i], rng, r.longest)
	}
	return true
}

// watch checks the ledgers after each interval, until a moment.
func (r *run) watch(t *testing.T, interval, until time.Duration) {
	t.Helper()
	for i := 0; now() < until; i++ {
		// Where the process stood still, all of it is late. The next check sees what is lost.
		if sleep(t, min(interval, until-now())) > 0 {
			continue
		}
		for _, l := range r.ledgers {
			l.check(t)
		}
		if interval > time.Second {
			t.Logf("%v: %v; %v", now().Round(time.Second), take(), r.ledgers[i%len(r.ledgers)])
		}
	}
}

// restLocked stops what repeats, and waits until whatever else is pending has fired.
func (r *run) restLocked(t *testing.T) {
	t.Helper()
	by := now() + r.longest + grace
	rng := rand.New(rand.NewPCG(1, 2))
	for i, l := range r.ledgers {
		l.ending.Store(true)
		for range 200 {
			if r.kinds[i].repeats {
				r.kinds[i].step(l, rng, r.longest)
			}
		}
	}
	for _, l := range r.ledgers {
		for l.started.Load() != l.fired.Load()+l.stopped.Load() {
			if still := sleep(t, 10*time.Millisecond); still > 0 {
				by += still + time.Second + sleep(t, time.Second) // what is late comes first
				continue
			}
			l.check(t)
			require.Less(t, now(), by, l)
		}
		l.check(t)
	}
	for _, s := range r.schedulers {
		for s.Len() > 0 { // a Deadline that was cleared, at first
			by += sleep(t, 10*time.Millisecond)
			require.Less(t, now(), by, "%s: %d timers are pending, and in no ledger", s.Name(), s.Len())
		}
	}
}

// resumeLocked ends a rest.
func (r *run) resumeLocked() {
	for _, l := range r.ledgers {
		l.ending.Store(false)
	}
}

// sleep sleeps for d. If the process stood still meanwhile it returns for how long, and
// else 0.
func sleep(t *testing.T, d time.Duration) (still time.Duration) {
	t.Helper()
	began := now()
	time.Sleep(d)
	if still = now() - began - d; still <= grace/2 {
		return 0
	}
	t.Logf("%v: the process stood still for %v", now().Round(time.Second), still.Round(time.Second))
	return still
}
