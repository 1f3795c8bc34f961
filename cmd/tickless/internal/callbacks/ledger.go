package callbacks

import (
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/cmd/tickless/internal/measure"
)

// chunk is how many tasks are scheduled by one call.
const chunk = 500

// A ledger is the account that is kept outside of the processes that are killed: what was
// acknowledged, and what has arrived.
type ledger struct {
	tasks     int
	seen      []atomic.Uint32 // how often a task has arrived
	delivered atomic.Int64    // tasks that have

	mu           sync.Mutex
	acknowledged []bool    // of each chunk
	scheduled    int       // tasks of these
	latest       time.Time // acknowledgement
	late         *measure.LateHistogram
	early        int64
	first, last  time.Time
}

func newLedger(tasks int) *ledger {
	return &ledger{tasks: tasks, seen: make([]atomic.Uint32, tasks), acknowledged: make([]bool, (tasks+chunk-1)/chunk),
		late: measure.NewLateHistogram()}
}

// bounds are the first task of a chunk, and the one behind its last.
func bounds(i, tasks int) (from, to int) { return i * chunk, min((i+1)*chunk, tasks) }

// acknowledge notes that a chunk was scheduled.
func (l *ledger) acknowledge(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i < 0 || i >= len(l.acknowledged) || l.acknowledged[i] {
		return
	}
	from, to := bounds(i, l.tasks)
	l.acknowledged[i] = true
	l.scheduled += to - from
	l.latest = time.Now()
}

// lastAcknowledged returns when the latest chunk was.
func (l *ledger) lastAcknowledged() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest
}

// open returns the chunks that were not acknowledged.
func (l *ledger) open() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var some []int
	for i, done := range l.acknowledged {
		if !done {
			some = append(some, i)
		}
	}
	return some
}

// arrive notes that a task has arrived.
func (l *ledger) arrive(i int, now, due time.Time) {
	if l.seen[i].Inc() > 1 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late.Record(now.Sub(due))
	if now.Before(due) {
		l.early++
	}
	if l.first.IsZero() {
		l.first = now
	}
	l.last = now
	l.delivered.Inc()
}

func (l *ledger) acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.scheduled
}

// sum writes the account into a result.
func (l *ledger) sum(r *result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Scheduled = int64(l.scheduled)
	for i := range l.seen {
		n := int64(l.seen[i].Load())
		switch acknowledged := l.acknowledged[i/chunk]; {
		case n > 0:
			r.Delivered++
			r.Duplicated += n - 1
		case acknowledged:
			r.Missing++
		}
	}
	r.Early, r.Late = l.early, l.late.Lateness()
	if d := l.last.Sub(l.first).Seconds(); d > 0 {
		r.Rate = float64(r.Delivered) / d
	}
}
