package soak

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// A run has several kinds of timers, each with a ledger. It works and pauses in turn.
// During a pause no timer is pending, so whatever grows from pause to pause is a leak.
type run struct {
	kinds      []kind
	ledgers    []*ledger
	schedulers []*timer.Scheduler
	longest    time.Duration

	// Steps hold gate for reading. A pause holds it for writing.
	gate sync.RWMutex
	// end is closed at the last pause.
	end chan struct{}
}

const (
	// mostPauses is the number of pauses in a run of half an hour: three in each third,
	// which flat compares.
	mostPauses = 9
	// longPause is how long memory is measured in a pause. A Scheduler's shards may keep
	// memory for ten seconds after their last timer.
	longPause = 15 * time.Second
)

// pauses returns how often a run of this length pauses. In each pause the run waits up to
// longest until no timer is pending, and then for the duration pause.
func pauses(length, longest time.Duration) (n int, pause time.Duration) {
	if length < time.Minute {
		return 2, 0 // nothing is measured
	}
	return min(mostPauses, max(1, int(length/(2*(longest+longPause))))), longPause
}

// work runs steps of kind i until the end.
func (r *run) work(i int, seed uint64, gap time.Duration) {
	rng := rand.New(rand.NewPCG(seed, uint64(i)))
	for r.steps(i, rng) {
		time.Sleep(gap + time.Duration(rng.Int64N(int64(gap))))
	}
}

// steps runs some steps of kind i. It reports false at the end of the run.
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

// watch checks the ledgers once in each interval, until the given moment.
func (r *run) watch(t *testing.T, interval, until time.Duration) {
	t.Helper()
	for i := 0; now() < until; i++ {
		// If the process stood still, all timers are late. So skip this check. The next
		// check finds lost timers.
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

// pauseLocked stops repeating timers, and waits until all other pending timers have
// fired.
func (r *run) pauseLocked(t *testing.T) {
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
				by += still + time.Second + sleep(t, time.Second) // late timers fire first
				continue
			}
			l.check(t)
			require.Less(t, now(), by, l)
		}
		l.check(t)
	}
	for _, s := range r.schedulers {
		for s.Len() > 0 { // the timer of a cleared Deadline may still be pending
			by += sleep(t, 10*time.Millisecond)
			require.Less(t, now(), by, "%s: %d timers are pending, and in no ledger", s.Name(), s.Len())
		}
	}
}

// resumeLocked ends a pause.
func (r *run) resumeLocked() {
	for _, l := range r.ledgers {
		l.ending.Store(false)
	}
}

// sleep sleeps for d. still is how long the process stood still during the sleep.
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
