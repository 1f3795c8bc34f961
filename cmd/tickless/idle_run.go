package main

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/cmd/tickless/internal/load"
)

// idlePace is how long the clients sleep when they have caught up with the plan.
const idlePace = time.Millisecond

// idleProgressPause is the least time between two calls of a run's progress.
const idleProgressPause = 100 * time.Millisecond

// An idleRun is a plan being carried out by one side.
type idleRun struct {
	plan *idlePlan
	base time.Time

	evictions []atomic.Int32 // of each connection
	settled   atomic.Int64   // connections that fell silent and were evicted

	mu struct {
		sync.Mutex
		late                     []time.Duration
		early, twice, unpunctual int64
	}
}

func (r *idleRun) now() time.Duration { return time.Since(r.base) }

// evicted notes that a connection, silent since a moment, is evicted now.
func (r *idleRun) evicted(conn int, since time.Duration) {
	late := r.now() - since - r.plan.config.Timeout
	again := r.evictions[conn].Inc() > 1
	r.mu.Lock()
	defer r.mu.Unlock()
	if again {
		r.mu.twice++
		return
	}
	if late < 0 {
		r.mu.early++
	}
	if !r.plan.silent[conn] {
		r.mu.unpunctual++
		return
	}
	r.mu.late = append(r.mu.late, late)
	r.settled.Inc()
}

// idleTransport brings the heartbeats to the side and back. Its memory and its
// making are not measured.
type idleTransport interface {
	// open prepares all connections.
	open(ctx context.Context, r *idleRun) error
	// begin has the side watch them.
	begin() error
	// send brings heartbeats, in order, that are due by now.
	send(beats []beat) error
	// end closes all connections, once with and once without begin before.
	end()
}

// run carries out the plan. When ctx ends, no more heartbeats are sent; the tally
// is of what was done until then. A progress that is not nil is called a few
// times a second with the number of heartbeats sent.
func (p *idlePlan) run(ctx context.Context, tr idleTransport, progress func(int64)) (*idleTally, error) {
	r := &idleRun{plan: p, evictions: make([]atomic.Int32, p.conns)}
	defer tr.end()
	if err := tr.open(ctx, r); err != nil {
		if ctx.Err() == nil {
			return nil, err
		}
		return &idleTally{Conns: p.conns, Interrupted: true}, nil
	}
	before := liveMemory()
	r.base = time.Now()
	if err := tr.begin(); err != nil {
		return nil, err
	}
	start := r.now() // of the first heartbeat
	cpuBefore, hasCPU := load.CPUTime()
	var behind, shown time.Duration
	sent := 0
	for ctx.Err() == nil && sent < len(p.beats) {
		now := r.now() - start
		from := sent
		for sent < len(p.beats) && p.beats[sent].at <= now {
			sent++
		}
		if sent > from {
			behind = max(behind, now-p.beats[from].at-2*idlePace)
			if err := tr.send(p.beats[from:sent]); err != nil {
				return nil, err
			}
			if progress != nil && (now-shown >= idleProgressPause || sent == len(p.beats)) {
				shown = now
				progress(int64(sent))
			}
		}
		sleepOrDone(ctx, idlePace)
	}
	silent := int64(p.silentOnes())
	for end := r.now() + p.config.Patience; ctx.Err() == nil && r.settled.Load() < silent && r.now() < end; {
		sleepOrDone(ctx, idlePace)
	}
	elapsed := r.now()
	cpuAfter, _ := load.CPUTime()

	t := r.tally(sent, elapsed-start, ctx.Err() != nil)
	t.Elapsed, t.Behind = elapsed, behind
	if hasCPU {
		cpu := cpuAfter - cpuBefore
		t.CPU = &cpu
	}
	t.Memory = max(0, liveMemory()-before)
	runtime.KeepAlive(tr)
	return t, nil
}

// tally adds up what was seen until a moment of the plan, of which some
// heartbeats have been sent. If it was cut short, a connection counts as silent
// only if it was evicted, or if that was due for a while.
func (r *idleRun) tally(sent int, elapsed time.Duration, interrupted bool) *idleTally {
	p := r.plan
	last := make([]time.Duration, p.conns)
	for i, b := range p.beats {
		last[b.conn] = b.at
		if i >= sent {
			last[b.conn] = elapsed // it goes on
		}
	}
	t := &idleTally{Conns: p.conns, Heartbeats: int64(sent), Interrupted: interrupted}
	for i, silent := range p.silent {
		evicted := r.evictions[i].Load() > 0
		if !silent || interrupted && !evicted && last[i]+p.config.Timeout+idleGrace > elapsed {
			continue
		}
		t.Silent++
		if !evicted {
			t.Missed++
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Evicted, t.Late = int64(len(r.mu.late)), slices.Clone(r.mu.late)
	t.Early, t.Twice, t.Unpunctual = r.mu.early, r.mu.twice, r.mu.unpunctual
	return t
}

func sleepOrDone(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
