package timer

import (
	"iter"
	"slices"
	"sync"
	"weak"
)

// WithName names the Scheduler. What reports on Schedulers tells them apart by it: see
// [Schedulers]. It need not be unique. The goroutines that run the Scheduler's
// callbacks, on the executor that it makes itself, carry it as the profiler label
// "scheduler": so a CPU profile and a goroutine profile tell whose they are. The default
// is no name; [Default]'s is "default".
func WithName(name string) Option {
	return option(func(c *config) { c.name = name })
}

// Name returns the name that the Scheduler was given with [WithName], or "".
func (s *Scheduler) Name() string { return s.config.name }

// named are the Schedulers that have names and are not closed.
var named struct {
	sync.Mutex
	all []weak.Pointer[Scheduler]
}

// Schedulers returns the process's Schedulers that have a name and are not closed, in
// the order in which they were made. Being named keeps none of them alive.
func Schedulers() iter.Seq[*Scheduler] {
	named.Lock()
	named.all = slices.DeleteFunc(named.all, func(p weak.Pointer[Scheduler]) bool {
		s := p.Value()
		return s == nil || s.closed.Load()
	})
	all := slices.Clone(named.all)
	named.Unlock()
	return func(yield func(*Scheduler) bool) {
		for _, p := range all {
			if s := p.Value(); s != nil && !s.closed.Load() && !yield(s) {
				return
			}
		}
	}
}

// register makes a Scheduler with a name known. It forgets those that are gone first,
// when they may be half of all.
func (s *Scheduler) register() {
	if s.config.name == "" {
		return
	}
	named.Lock()
	defer named.Unlock()
	if len(named.all) == cap(named.all) {
		named.all = slices.DeleteFunc(named.all, func(p weak.Pointer[Scheduler]) bool {
			s := p.Value()
			return s == nil || s.closed.Load()
		})
	}
	named.all = append(named.all, weak.Make(s))
}
