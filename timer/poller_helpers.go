package timer

import (
	"context"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"
)

// One poller fires between half a million and six million timers a second: the more
// procs there are, the more homes starts are spread over, and the fewer timers a bucket
// has. So there is a helper for procsPerHelper procs.
var procsPerHelper = 4 // a test makes it less

// helpAfter is how long the poller works alone.
const helpAfter = time.Millisecond

// helpers are goroutines that do what the poller does, beside it, while it is behind.
// Like it they take what is due from the queue and from the backlog, a batch at a time.
// They are never waited for: beside n computing goroutines on p procs it takes n/p
// times ten milliseconds until one of them runs, and it may find nothing to do then.
//
// A helper ends when nothing is due, or after a turn. The poller may have fallen asleep
// before. Who leaves a shard in the backlog puts it there first and calls wakeBehind
// then, and the poller looks at the backlog where it looks at the queue, so that what
// is said of the queue holds of the backlog too: see poller.
//
// A shard's timers come in the order of its lock's holds, whoever holds it. What two of
// these have taken from it may reach the executor in either order.
type helpers struct {
	// after is helpAfter, and most how many there are at the most.
	after time.Duration
	most  int32
	n     atomic.Int32
}

func (h *helpers) init() {
	h.after = helpAfter
	h.most = int32(runtime.GOMAXPROCS(0) / procsPerHelper)
}

// callHelper makes a helper, unless there are as many as there may be.
func (p *poller) callHelper() {
	if p.helpers.n.Load() >= p.helpers.most {
		return // only the poller makes them
	}
	p.helpers.n.Inc()
	p.running.Add(1)
	go p.help(&drainer{p: p, helping: true, rang: p.rang, overdue: p.overdue})
}

// help works until nothing is due, or for a turn.
func (p *poller) help(d *drainer) {
	pprof.SetGoroutineLabels(context.Background()) // not those of who has started a timer
	over := false
	defer func() {
		if !over {
			// The handler of late timers has ended this goroutine, with
			// runtime.Goexit. Another takes over where it stopped.
			go p.help(d)
		}
	}()
	d.tellLate()
	for begin := p.s.now(); p.s.now()-begin <= int64(turn); {
		sh, b, queued := p.next(false)
		if sh == nil {
			d.flush() // callbacks do not wait for timers that only move down
			if sh = p.backlog.popMoves(); sh == nil {
				break
			}
		}
		d.drain(sh, b, queued)
	}
	d.flush()
	d.letGo()
	if d.idle {
		p.s.trim.soon()
	}
	over = true
	p.helpers.n.Dec()
	if p.backlog.any() {
		p.wakeBehind()
	}
	p.running.Add(-1)
}

// wakeBehind has the poller look at the backlog.
func (p *poller) wakeBehind() {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Closed, it has nothing to find there, and perhaps no alarm.
	if !p.awake && !p.closed {
		p.armed = p.s.now()
		p.alarm.Reset(0)
	}
}

// backlogs are the shards whose expired timers are not all worked through.
type backlogs struct {
	mu sync.Mutex
	// due are those with timers that are to be fired, moves others with timers that
	// are only to be moved down: see poller.work.
	due, moves shardList
}

func (l *backlogs) pushDue(sh *shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due.push(sh)
}

func (l *backlogs) pushMoves(sh *shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moves.push(sh)
}

func (l *backlogs) popDue() *shard {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due.pop()
}

func (l *backlogs) popMoves() *shard {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.moves.pop()
}

// any reports whether there are any.
func (l *backlogs) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.due)+len(l.moves) > 0
}

// A shardList is shards that wait for their turn. A shard is in it once.
type shardList []*shard

func (l *shardList) push(sh *shard) {
	if !slices.Contains(*l, sh) {
		*l = append(*l, sh)
	}
}

// pop takes the shard that has waited longest, or returns nil.
func (l *shardList) pop() *shard {
	if len(*l) == 0 {
		return nil
	}
	sh := (*l)[0]
	*l = slices.Delete(*l, 0, 1)
	return sh
}
