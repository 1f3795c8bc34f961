package load

import (
	"context"
	"time"
)

// aloneScale is the part of the load that [OwnCPU] runs.
const aloneScale = 4

// OwnCPU returns about how much CPU time the load of c takes by itself, on
// timers that cost nothing: pacing, reading the clock, keeping the records. ok
// is false where the system does not tell. It runs a quarter of the load, at
// the same rate, in about a quarter of the time.
func OwnCPU(ctx context.Context, c Config) (cpu time.Duration, ok bool, err error) {
	c.Count = max(1, c.Count/aloneScale)
	c.Duration = max(1, c.Duration/aloneScale)
	c.MinDelay = max(1, c.MinDelay/aloneScale)
	c.MaxDelay = max(1, c.MaxDelay/aloneScale)
	p, err := NewPlan(c)
	if err != nil {
		return 0, false, err
	}
	r, err := p.Run(ctx, &alone{plan: p}, nil)
	if err != nil || r.CPU == nil || r.Interrupted {
		return 0, false, err
	}
	return *r.CPU * aloneScale, true, nil
}

// alone is no timer at all: what the plan leaves to time out is called at
// once, and everything else is stopped.
type alone struct{ plan *Plan }

func (*alone) Name() string { return "the load alone" }
func (*alone) Open() error  { return nil }

func (b *alone) Start(i int, _ time.Duration, f func()) error {
	if b.plan.answerAt[i] == never {
		f()
	}
	return nil
}

func (*alone) Stop(int) bool           { return true }
func (*alone) Fired(int)               {}
func (*alone) Wakeups() (uint64, bool) { return 0, false }
func (*alone) Close() (int, error)     { return 0, nil }
