package redistimer

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/tickless/tickless/timer"
)

// A gatherer makes one pipeline of the rounds of several loops, if they follow one
// another within a short time. What costs most at a steady load is not what the
// scripts do, but that the server and the worker wake up for each: so a thousand
// tasks a second take about half of the processor's time that they take one by one
// (BenchmarkSteady). The first round after a pause is not delayed, and neither is a
// large one.
//
// It is for one server. In a cluster, a pipeline waits for the slowest of several.
type gatherer struct {
	c      *Client
	timers *timer.Scheduler
	// slack is how long after a pipeline the next one begins at the soonest.
	slack time.Duration

	mu      sync.Mutex
	sent    time.Time // when the last pipeline began
	waiting []*gathered
}

// gathered is a round: build makes its calls, at the moment at which they are sent,
// while the loop waits.
type gathered struct {
	build func(now time.Time) []call
	calls []call
	cmds  []*redis.Cmd
	sent  time.Time
	done  chan struct{} // closed when cmds are there
}

// run runs a round. It returns the answers, and when the pipeline began.
func (g *gatherer) run(large bool, build func(now time.Time) []call) ([]*redis.Cmd, time.Time) {
	now := time.Now()
	g.mu.Lock()
	wait := g.slack - now.Sub(g.sent)
	if large || len(g.waiting) == 0 && wait <= 0 {
		g.sent = now
		g.mu.Unlock()
		return g.c.runAny(build(now)), now
	}
	mine := &gathered{build: build, done: make(chan struct{})}
	g.waiting = append(g.waiting, mine)
	first := len(g.waiting) == 1
	g.mu.Unlock()
	if first {
		if _, err := g.timers.Start(wait, g.send); err != nil {
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
		x.calls = x.build(now)
		calls = append(calls, x.calls...)
	}
	cmds := g.c.runAny(calls)
	for _, x := range some {
		x.sent = now
		x.cmds, cmds = cmds[:len(x.calls)], cmds[len(x.calls):]
		close(x.done)
	}
}

// runAny is run for what may be no calls at all.
func (c *Client) runAny(calls []call) []*redis.Cmd {
	if len(calls) == 0 {
		return nil
	}
	return c.run(context.Background(), calls...)
}
