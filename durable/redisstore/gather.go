package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/timer"
)

// A gatherer makes one pipeline of several rounds, if they follow one another within a
// short time. At a steady load much of what a round costs is that the server and the
// worker wake up for it: so a thousand tasks a second take about a third of the
// processor's time that they take one by one (BenchmarkSteady). The first round after a
// pause is not delayed, and neither is a large one.
//
// It is for one server. In a Cluster, a pipeline waits for the slowest of several.
type gatherer struct {
	s *Store
	// slack is how long after a pipeline the next one begins at the soonest.
	slack time.Duration

	mu      sync.Mutex
	sent    time.Time // when the last pipeline began
	waiting []*gathered
}

// gathered is a round that waits.
type gathered struct {
	build func() call
	built chan struct{} // closed when build has returned
	cmd   *redis.Cmd
	done  chan struct{} // closed when cmd is there
}

// run runs a round, which is built when it is sent.
func (g *gatherer) run(ctx context.Context, large bool, build func() call) *redis.Cmd {
	now := time.Now()
	g.mu.Lock()
	wait := g.slack - now.Sub(g.sent)
	if large || len(g.waiting) == 0 && wait <= 0 {
		g.sent = now
		g.mu.Unlock()
		return g.s.run(ctx, build())[0]
	}
	mine := &gathered{build: build, built: make(chan struct{}), done: make(chan struct{})}
	g.waiting = append(g.waiting, mine)
	first := len(g.waiting) == 1
	g.mu.Unlock()
	if first {
		timer.AfterFunc(wait, g.send)
	}
	select {
	case <-mine.done:
		return mine.cmd
	case <-ctx.Done():
	}
	g.mu.Lock()
	i := slices.Index(g.waiting, mine)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	g.mu.Unlock()
	if i >= 0 {
		return failed(ctx, &unsentError{ctx.Err()})
	}
	<-mine.built
	return failed(ctx, ctx.Err())
}

// send sends what waits. The calls end by themselves: a round is not worth a wait for
// others.
func (g *gatherer) send() {
	g.mu.Lock()
	some := g.waiting
	if len(some) == 0 { // all have given up
		g.mu.Unlock()
		return
	}
	g.waiting = nil
	g.sent = time.Now()
	g.mu.Unlock()
	calls := make([]call, len(some))
	for i, x := range some {
		calls[i] = x.build()
		close(x.built)
	}
	for i, cmd := range g.s.run(context.Background(), calls...) {
		some[i].cmd = cmd
		close(some[i].done)
	}
}
