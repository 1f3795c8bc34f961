package requests

import (
	"context"
	"time"
)

// OwnCPUScale returns by how much a load is cut down to tell what CPU time it
// takes by itself: a quarter is enough, and two seconds of a long one are.
func OwnCPUScale(duration time.Duration) time.Duration {
	return max(4, duration/(2*time.Second))
}

// OwnCPU returns about how much CPU time the load of c takes by itself, on
// timers that cost nothing: pacing, reading the clock, keeping the records. ok
// is false where the system does not tell. It runs a part of the load, at
// the same rate: see [OwnCPUScale].
func OwnCPU(ctx context.Context, c Config) (cpu time.Duration, ok bool, err error) {
	scale := OwnCPUScale(c.Duration)
	c.Count = max(1, c.Count/int(scale))
	c.Duration = max(1, c.Duration/scale)
	c.MinDelay = max(1, c.MinDelay/scale)
	c.MaxDelay = max(1, c.MaxDelay/scale)
	p, err := NewPlan(c)
	if err != nil {
		return 0, false, err
	}
	r, err := p.Run(ctx, &alone{plan: p}, nil)
	if err != nil || r.CPU == nil || r.Interrupted {
		return 0, false, err
	}
	return *r.CPU * scale, true, nil
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
