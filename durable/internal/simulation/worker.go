package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/tickless/tickless/durable"
)

// A workerConfig is what a worker actor is like, in all its lives.
type workerConfig struct {
	concurrency   int
	lease         time.Duration
	maxCrashes    int
	shutdown      time.Duration
	deadAge       time.Duration
	deadCount     int
	lives         time.Duration // until a crash or a stop
	knowsSchedule bool
	isShared      bool // the Worker shares its Client with others
	handlers      map[string]*handlerConfig
}

type handlerConfig struct {
	most, attempts int
	rate           float64
	timeout        time.Duration
}

const (
	maxBackoff = 500 * time.Millisecond
	period     = 700 * time.Millisecond // of the schedule "s"
)

var handlerNames = []string{"a", "b", "c", "d"}

func newWorkerConfig(r *rand.Rand) *workerConfig {
	c := &workerConfig{
		concurrency: 1 + r.IntN(8), lease: 600*time.Millisecond + upTo(r, 2*time.Second).Round(time.Millisecond), maxCrashes: 1 + r.IntN(5),
		shutdown: upTo(r, 2*time.Second), knowsSchedule: chance(r, 70), handlers: make(map[string]*handlerConfig),
		lives: randomOf(r, 1500*time.Millisecond, 20*time.Second), isShared: chance(r, 50),
	}
	if chance(r, 15) {
		c.deadAge, c.deadCount = upTo(r, 30*time.Second), 1+r.IntN(10)
	}
	c.knowsSchedule = c.knowsSchedule || c.isShared
	for i, name := range handlerNames {
		h := &handlerConfig{most: randomOf(r, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3), attempts: 1 + r.IntN(5),
			rate: randomOf(r, 0, 0, 0, 0, 0, 0, 3+r.Float64()*40), timeout: 200*time.Millisecond + upTo(r, 3*time.Second)}
		if chance(r, 80) || i == 0 {
			c.handlers[name] = h
		}
	}
	return c
}

// A process is a Worker with its connection. It dies in a crash.
type process struct {
	*simulation
	name   string
	config *workerConfig
	end    *endpoint
	worker *durable.Worker
	poison chan struct{} // has an element if a handler kills the process
	life   *life         // the present one; guarded by ledger.mu
}

// sharedEnd returns the connection that some Workers share, until one of them dies.
func (s *simulation) sharedEnd() *endpoint {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	if s.shared == nil || isClosed(s.shared.dead) {
		s.shares++
		s.shared = s.server.connect(fmt.Sprint("shared.", s.shares), true)
	}
	return s.shared
}

// A life is a Run of a process's Worker, until it ends or the process dies.
type life struct {
	*process
	// Guarded by ledger.mu.
	begun         map[string][]time.Time // when each handler has begun in calm
	suspectsEnded int
	isLive        bool
	stoppedAt     time.Time
}

func (s *simulation) startProcess(name string, c *workerConfig) *process {
	p := &process{simulation: s, name: name, config: c, poison: make(chan struct{}, 1)}
	if c.isShared {
		p.end = s.sharedEnd()
	} else {
		p.end = s.server.connect(name, c.knowsSchedule)
	}
	p.worker = durable.NewWorker(p.end.client, durable.WithConcurrency(c.concurrency), durable.WithLease(c.lease),
		durable.WithMaxCrashes(c.maxCrashes), durable.WithShutdownTimeout(c.shutdown), durable.WithDeadLimit(c.deadAge, c.deadCount))
	for _, name := range handlerNames {
		h := c.handlers[name]
		if h == nil {
			continue
		}
		opts := []durable.HandlerOption{durable.WithBackoff(10*time.Millisecond, maxBackoff), durable.WithMaxAttempts(h.attempts), durable.WithTimeout(h.timeout)}
		if h.most > 0 {
			opts = append(opts, durable.WithHandlerConcurrency(h.most))
		}
		if h.rate > 0 {
			opts = append(opts, durable.WithRate(h.rate))
		}
		p.worker.Handle(name, p.handle, opts...)
	}
	return p
}

// runWorker plays a worker actor: it runs, stops, crashes and starts again.
func (s *simulation) runWorker(name string) {
	config := newWorkerConfig(s.plan.random(name))
	var p *process
	for n := 0; ; n++ {
		r := s.plan.random(name, "life", n)
		if s.sleep(upTo(r, 100*time.Millisecond)); isClosed(s.over) {
			return // the Worker would be closed before it runs
		}
		if p == nil {
			p = s.startProcess(fmt.Sprint(name, ".", n), config)
		}
		if !p.live(r) {
			p = nil
		}
		s.sleep(upTo(r, time.Second))
	}
}

// live plays a life. It reports whether the process stays.
func (p *process) live(r *rand.Rand) (stays bool) {
	v := &life{process: p, begun: make(map[string][]time.Time), isLive: true}
	p.ledger.mu.Lock()
	p.life = v
	p.ledger.lives = append(p.ledger.lives, v)
	p.ledger.mu.Unlock()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.worker.Run(ctx) }()
	fault, how := p.awaitFault(r, ended), r.IntN(4)
	p.trace(p.name, "ends: %s (%d)", fault, how)
	limit := p.config.shutdown + 2*max(p.config.lease/3, time.Second) + 8*time.Second
	p.ledger.mu.Lock()
	v.isLive, v.stoppedAt = false, time.Now()
	if all, _, _, _ := p.ledger.countLocked(v, ""); all == 0 && p.settled() {
		limit = 300 * time.Millisecond
	}
	p.ledger.mu.Unlock()
	began := time.Now()
	if stays = fault == stop && how == 0; !stays && !p.config.isShared {
		defer p.end.kill()
	}
	if fault == crash { // messages that are under way still arrive
		p.end.kill()
	}
	if fault == crash || how == 3 {
		_ = p.worker.Close()
	} else {
		cancel()
	}
	err := <-ended
	switch d := time.Since(began); {
	case isClosed(p.end.dead):
	case d > limit:
		p.fail("slow end", "%s: Run has ended after %v, more than %v", p.name, d, limit)
	case err != nil && (!errors.Is(err, durable.ErrNotHandedBack) || p.settled()):
		p.fail("run failed", "%s: Run returned %v", p.name, err)
	}
	return stays
}

// awaitFault waits until the Worker must stop or crash, and returns which.
func (p *process) awaitFault(r *rand.Rand, ended chan error) (fault string) {
	next := time.After(200*time.Millisecond + upTo(r, p.config.lives))
	fault = randomOf(r, crash, crash, stop)
	for {
		select {
		case <-next:
			// Workers are also stopped in calm, as for a deployment.
			if p.on(fault) || fault == stop && p.settled() && p.plan.has(stop) {
				return fault
			}
			next = time.After(upTo(r, p.config.lives))
		case <-p.poison:
			return crash
		case <-p.end.dead: // another Worker has died
			return crash
		case <-p.over:
			if p.hasFailed() {
				return crash
			}
			return stop
		case err := <-ended:
			if !isClosed(p.end.dead) {
				p.fail("run ended", "%s: Run has ended by itself: %v", p.name, err)
			}
			ended <- err
			return crash
		}
	}
}

var errHandler = errors.New("the handler failed")

// hangs is how long a handler takes that hangs. It ends when the calm begins.
const hangs = time.Hour

// handle is the handler of all tasks. It does something else in each attempt.
func (p *process) handle(ctx context.Context, d durable.Delivery) error {
	r := p.plan.random(d.Key, d.Token)
	p.ledger.mu.Lock()
	v := p.life
	p.ledger.mu.Unlock()
	x := p.ledger.begin(ctx, v, &d)
	defer p.ledger.end(x)
	takes, result, obeys := p.behaviour(r, &d)
	if isPoison := d.Key == "k0" || d.Key == "k1"; chance(r, 50) && isPoison && p.on(crash) {
		time.Sleep(upTo(r, 5*time.Millisecond))
		select {
		case p.poison <- struct{}{}:
		default:
		}
	}
	cancelled, released := ctx.Done(), p.calmBegins
	if !obeys {
		cancelled = nil
	}
	if takes < hangs {
		released = nil
	}
	x.how = "dies"
	select {
	case <-time.After(takes):
	case <-released:
		time.Sleep(upTo(r, time.Millisecond))
	case <-p.end.dead:
		return errHandler
	case <-cancelled:
		time.Sleep(upTo(r, time.Millisecond))
		x.how = fmt.Sprint(context.Cause(ctx))
		return ctx.Err()
	}
	p.end.standStill(upTo(r, time.Microsecond))
	delay := upTo(r, time.Second)
	switch x.how = result; result {
	case "fail":
		return errHandler
	case "no retry":
		return durable.NoRetry(errHandler)
	case "retry after":
		x.delay = delay
		return durable.RetryAfter(errHandler, delay)
	case "hand back":
		x.delay = delay
		return durable.HandBack(errHandler, delay)
	case "panic":
		panic("the handler panics")
	case "exit":
		runtime.Goexit()
	}
	return d.SetResult([]byte(result))
}

// behaviour returns how long a handler takes, how it ends, and whether it obeys its context.
func (p *process) behaviour(r *rand.Rand, d *durable.Delivery) (takes time.Duration, result string, obeys bool) {
	takes, obeys = upTo(r, 40*time.Millisecond), chance(r, 85)
	result = randomOf(r, "done", "done", "done", "done", "fail", "no retry", "retry after", "hand back", "panic", "exit")
	long, kind := upTo(r, 3*p.config.lease), r.IntN(100)
	switch {
	case strings.HasPrefix(d.Key, "slow"):
		return time.Minute, "done", true
	case p.isCalm():
		if kind < 15 {
			takes = long / 2
		}
		return takes, "done", true
	case kind < 12:
		takes = long
	case kind < 16:
		takes = 3 * long
	case kind < 18, d.Crashes > 0 && kind < 36:
		return hangs, result, false
	case kind < 30:
		takes = upTo(r, time.Microsecond)
	}
	return takes, result, obeys
}
