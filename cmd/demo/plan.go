package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"go.uber.org/atomic"
)

// MaxCount is the largest number of requests in a plan, which needs about 10 GB.
const MaxCount = 100_000_000

// Config describes the load.
type Config struct {
	Count     int           `json:"count"`        // requests, 1 to MaxCount
	Duration  time.Duration `json:"duration_ns"`  // how long requests arrive, at a steady rate
	StopRatio float64       `json:"stop_ratio"`   // share of requests answered before their timeout, 0 to 1
	MinDelay  time.Duration `json:"delay_min_ns"` // timeouts are random between MinDelay and MaxDelay
	MaxDelay  time.Duration `json:"delay_max_ns"`
	Seed      uint64        `json:"seed"` // the same seed gives the same plan
}

// maxDuration is the longest duration or delay, so that their sums cannot overflow.
const maxDuration = 24 * time.Hour

// Validate returns an error if a field of c is out of range.
func (c Config) Validate() error {
	switch {
	case c.Count < 1 || c.Count > MaxCount:
		return fmt.Errorf("the count must be from 1 to %d, got %d", MaxCount, c.Count)
	case c.Duration <= 0 || c.Duration > maxDuration:
		return fmt.Errorf("the duration must be positive and at most %v, got %v", maxDuration, c.Duration)
	case math.IsNaN(c.StopRatio) || c.StopRatio < 0 || c.StopRatio > 1:
		return fmt.Errorf("the stop ratio must be from 0 to 1, got %v", c.StopRatio)
	case c.MinDelay <= 0:
		return fmt.Errorf("the shortest delay must be positive, got %v", c.MinDelay)
	case c.MaxDelay > maxDuration:
		return fmt.Errorf("the longest delay must be at most %v, got %v", maxDuration, c.MaxDelay)
	case c.MinDelay > c.MaxDelay:
		return fmt.Errorf("the shortest delay (%v) must not exceed the longest (%v)", c.MinDelay, c.MaxDelay)
	}
	return nil
}

// The states of a request. It is pending until Stop returns true (stopped) or its
// callback runs (fired). Result.FiredTwiceOrAfterStop counts what happens after that.
const (
	pending uint32 = iota
	stopped
	fired
)

// A Plan is a generated load: when each request arrives, times out and is answered. All
// slices except workers are indexed by request.
type Plan struct {
	config Config
	delays []time.Duration
	// answerAt is when a request is answered, relative to the start of the run. It is
	// the constant never if the request times out.
	answerAt []time.Duration
	workers  []worker

	deadlines []time.Duration // written just before Start, read by the callback
	lateness  []time.Duration // written by the callback that sets the state to fired
	states    []atomic.Uint32
	callbacks []func() // made in advance

	// currentRun is nil between runs, so that the plan does not keep the backend in
	// memory.
	currentRun atomic.Pointer[run]
}

// A worker is a goroutine that sends every n-th request and its answer, with n workers.
type worker struct {
	firstRequest     int     // its first request
	answeredRequests []int32 // its answered requests, in the order of their answers
}

const never = time.Duration(math.MaxInt64)

var errTooManyRequests = errors.New("too many requests for a 32-bit machine")

// NewPlan generates the load that c describes. A plan needs about 100 bytes a request.
func NewPlan(c Config) (*Plan, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if math.MaxInt == math.MaxInt32 && c.Count > MaxCount/10 {
		return nil, errTooManyRequests
	}
	p := &Plan{
		config:    c,
		delays:    make([]time.Duration, c.Count),
		answerAt:  make([]time.Duration, c.Count),
		workers:   make([]worker, runtime.GOMAXPROCS(0)),
		deadlines: make([]time.Duration, c.Count),
		lateness:  make([]time.Duration, c.Count),
		states:    make([]atomic.Uint32, c.Count),
		callbacks: make([]func(), c.Count),
	}
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	for i := range p.delays {
		p.delays[i] = c.MinDelay + time.Duration(rng.Int64N(int64(c.MaxDelay-c.MinDelay)+1))
		p.answerAt[i] = never
		if rng.Float64() < c.StopRatio {
			// Plan no answer in the last tenth of the timeout: a busy machine may send
			// it late.
			p.answerAt[i] = p.arrivalTime(i) + time.Duration(float64(p.delays[i])*0.9*rng.Float64())
		}
		p.callbacks[i] = func() { p.handleFired(i) }
	}
	for w := range p.workers {
		p.workers[w].firstRequest = w
		answers := make([]int32, 0, c.Count/len(p.workers)+1)
		for i := w; i < c.Count; i += len(p.workers) {
			if p.answerAt[i] != never {
				answers = append(answers, int32(i))
			}
		}
		slices.SortFunc(answers, func(i, j int32) int { return cmp.Compare(p.answerAt[i], p.answerAt[j]) })
		p.workers[w].answeredRequests = answers
	}
	return p, nil
}

// arrivalTime returns when request i arrives, relative to the start of the run.
func (p *Plan) arrivalTime(i int) time.Duration {
	return time.Duration(float64(p.config.Duration) * float64(i) / float64(p.config.Count))
}

// resetResults clears the results of the last run.
func (p *Plan) resetResults() {
	clear(p.deadlines)
	clear(p.lateness)
	for i := range p.states {
		p.states[i].Store(pending)
	}
}
