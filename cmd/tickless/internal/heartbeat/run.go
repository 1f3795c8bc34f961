package heartbeat

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/cmd/tickless/internal/measure"
)

// pace is how long the clients sleep when they have caught up with the plan.
const pace = time.Millisecond

// progressPause is the least time between two calls of a run's progress.
const progressPause = 100 * time.Millisecond

// A run is a plan being carried out by one side.
type run struct {
	plan *plan
	base time.Time

	evictions []atomic.Int32 // of each connection
	over      atomic.Bool    // all heartbeats are sent: from now on every connection is silent
	settled   atomic.Int64   // connections that fell silent and were evicted

	mu struct {
		sync.Mutex
		late                     []time.Duration
		early, twice, unpunctual int64
	}
}

func (r *run) now() time.Duration { return time.Since(r.base) }

// evicted notes that a connection, silent since a moment, is evicted now.
func (r *run) evicted(conn int, since time.Duration) {
	late := r.now() - since - r.plan.config.Timeout
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.evictions[conn].Inc() > 1 {
		r.mu.twice++
		return
	}
	if late < 0 {
		r.mu.early++
	}
	if !r.plan.silent[conn] {
		if !r.over.Load() {
			r.mu.unpunctual++
		}
		return
	}
	r.mu.late = append(r.mu.late, late)
	r.settled.Inc()
}

// transport brings the heartbeats to the side and back. Its memory and its
// making are not measured.
type transport interface {
	// open prepares all connections.
	open(ctx context.Context, r *run) error
	// begin has the side watch them.
	begin() error
	// send brings heartbeats, in order, that are due by now.
	send(beats []beat) error
	// held returns how many connections take memory when some are evicted.
	held(evicted int) int
	// end closes all connections, once with and once without begin before.
	end()
}

// run carries out the plan. When ctx ends, no more heartbeats are sent; the tally
// is of what was done until then. A progress that is not nil is called a few
// times a second with the number of heartbeats sent.
func (p *plan) run(ctx context.Context, tr transport, progress func(int64)) (*tally, error) {
	r := &run{plan: p, evictions: make([]atomic.Int32, p.conns)}
	defer tr.end()
	if err := tr.open(ctx, r); err != nil {
		if ctx.Err() == nil {
			return nil, err
		}
		return &tally{Conns: p.conns, Interrupted: true}, nil
	}
	before := measure.LiveMemory()
	r.base = time.Now()
	if err := tr.begin(); err != nil {
		return nil, err
	}
	start := r.now() // of the first heartbeat
	cpuBefore, hasCPU := measure.CPUTime()
	var behind, shown time.Duration
	sent := 0
	for ctx.Err() == nil && sent < len(p.beats) {
		now := r.now() - start
		from := sent
		for sent < len(p.beats) && p.beats[sent].at <= now {
			sent++
		}
		if sent > from {
			behind = max(behind, now-p.beats[from].at-2*pace)
			if err := tr.send(p.beats[from:sent]); err != nil {
				return nil, err
			}
			if progress != nil && (now-shown >= progressPause || sent == len(p.beats)) {
				shown = now
				progress(int64(sent))
			}
		}
		measure.Sleep(ctx, pace)
	}
	r.over.Store(true)
	silent := int64(p.silentOnes())
	for end := r.now() + p.config.Patience; ctx.Err() == nil && r.settled.Load() < silent && r.now() < end; {
		measure.Sleep(ctx, pace)
	}
	elapsed := r.now()
	cpuAfter, _ := measure.CPUTime()

	t := r.tally(sent, elapsed-start, ctx.Err() != nil)
	t.Elapsed, t.Behind = elapsed, behind
	if hasCPU {
		cpu := cpuAfter - cpuBefore
		t.CPU = &cpu
	}
	gone := 0
	for i := range r.evictions {
		if r.evictions[i].Load() > 0 {
			gone++
		}
	}
	t.Memory, t.Held = max(0, measure.LiveMemory()-before), tr.held(gone)
	runtime.KeepAlive(tr)
	return t, nil
}

// tally adds up what was seen until a moment of the plan, of which some
// heartbeats have been sent. If it was cut short, a connection counts as silent
// only if it was evicted, or if that was due for a while.
func (r *run) tally(sent int, elapsed time.Duration, interrupted bool) *tally {
	p := r.plan
	last := make([]time.Duration, p.conns)
	for i, b := range p.beats {
		last[b.conn] = b.at
		if i >= sent {
			last[b.conn] = elapsed // it goes on
		}
	}
	t := &tally{Conns: p.conns, Heartbeats: int64(sent), Interrupted: interrupted}
	r.mu.Lock() // evictions may go on: all figures are of one moment
	defer r.mu.Unlock()
	for i, silent := range p.silent {
		evicted := r.evictions[i].Load() > 0
		if !silent || interrupted && !evicted && last[i]+p.config.Timeout+grace > elapsed {
			continue
		}
		t.Silent++
		if !evicted {
			t.Missed++
		}
	}
	t.Evicted, t.Late = int64(len(r.mu.late)), slices.Clone(r.mu.late)
	t.Early, t.Twice, t.Unpunctual = r.mu.early, r.mu.twice, r.mu.unpunctual
	return t
}
