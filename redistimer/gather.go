package redistimer

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/tickless/tickless/timer"
)

// A gatherer makes one pipeline of the rounds of several loops, if they follow one
// another within gatherFor. What costs most at a steady load is not what the scripts
// do, but that the server and the worker wake up for each: a thousand tasks a second
// take less than half of the processor's time that they take one by one
// (BenchmarkSteady). The first round after a pause is not delayed, and neither is a
// large one.
//
// It is for one server. In a cluster, a pipeline waits for the slowest of several.
type gatherer struct {
	c      *Client
	timers *timer.Scheduler

	mu      sync.Mutex
	sent    time.Time // when the last pipeline began
	waiting []*gathered
}

// gathered is a round.
type gathered struct {
	calls []call
	cmds  []*redis.Cmd
	sent  time.Time
	done  chan struct{} // closed when cmds are there
}

const (
	// gatherFor is how long after a pipeline the next one begins at the soonest. It
	// adds to a task's lateness.
	gatherFor = 2 * time.Millisecond
	// gatherMost is the number of arguments from which on a round goes by itself: it
	// is a pipeline's worth.
	gatherMost = 100
)

// run is Client.run for a round. It returns when the pipeline began, too.
func (g *gatherer) run(ctx context.Context, calls []call) ([]*redis.Cmd, time.Time) {
	size := 0
	for _, x := range calls {
		size += len(x.args)
	}
	now := time.Now()
	g.mu.Lock()
	wait := gatherFor - now.Sub(g.sent)
	if size > gatherMost || len(g.waiting) == 0 && wait <= 0 {
		g.sent = now
		g.mu.Unlock()
		return g.c.run(ctx, calls...), now
	}
	mine := &gathered{calls: calls, done: make(chan struct{})}
	g.waiting = append(g.waiting, mine)
	first := len(g.waiting) == 1
	g.mu.Unlock()
	if first {
		if _, err := g.timers.Start(max(wait, 0), g.send); err != nil {
			g.send() // the Worker ends
		}
	}
	<-mine.done
	return mine.cmds, mine.sent
}

// send sends what waits.
func (g *gatherer) send() {
	g.mu.Lock()
	some := g.waiting
	g.waiting = nil
	now := time.Now()
	g.sent = now
	g.mu.Unlock()
	var calls []call
	for _, x := range some {
		calls = append(calls, x.calls...)
	}
	cmds := g.c.run(context.Background(), calls...)
	for _, x := range some {
		x.sent = now
		x.cmds, cmds = cmds[:len(x.calls)], cmds[len(x.calls):]
		close(x.done)
	}
}
