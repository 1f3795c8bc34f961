package observe

import (
	"iter"
	"weak"

	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

// A Source is a list of things of one type, such as Schedulers, whose numbers an exporter
// exports. The functions of this package return Sources, and panic if they are given nil.
//
// # Names
//
// The name of a thing becomes the value of a label. If two things of a type have the same
// name, the second becomes "name#2".
//
// A thing that is in several Sources is exported once. The name that is given to
// [Scheduler] takes precedence over the Scheduler's own name.
//
// # Panics
//
// If reading a thing panics, only its read_failures are exported. The process and other
// things are not affected.
type Source = metric.Source

// Schedulers returns a Source of the process's Schedulers that have a name: see
// [timer.WithName]. Each export reads those that are open then. The Source keeps no
// Scheduler in memory.
func Schedulers() Source {
	return metric.Source{Thing: schedulerThing, Objects: func() iter.Seq[metric.Object] {
		return func(yield func(metric.Object) bool) {
			for s := range timer.Schedulers() {
				if !yield(newSchedulerObject(s.Name(), s)) {
					return
				}
			}
		}
	}}
}

// Scheduler returns a Source of one Scheduler, under the given name. The Scheduler is
// exported even after it is closed.
func Scheduler(name string, s *timer.Scheduler) Source {
	mustNotBeNil("Scheduler", s)
	return metric.One(schedulerThing, newSchedulerObject(name, s))
}

func newSchedulerObject(name string, s *timer.Scheduler) metric.Object {
	return metric.Object{Name: name, ID: weak.Make(s), Read: func() any { return s.Stats() }}
}

// Keyed returns a Source of a Timers of package keyed.
func Keyed[K comparable, V any](name string, k *keyed.Timers[K, V]) Source {
	mustNotBeNil("Keyed", k)
	return metric.One(keyedThing, metric.Object{Name: name, ID: k, Read: func() any { return k.Len() }})
}

// Purgatory returns a Source of one Purgatory.
func Purgatory[K comparable](name string, p *purgatory.Purgatory[K]) Source {
	mustNotBeNil("Purgatory", p)
	return metric.One(purgatoryThing, metric.Object{Name: name, ID: p, Read: func() any { return p.Stats() }})
}

// Monitor returns a Source of one Monitor of package idle.
func Monitor[T any](name string, m *idle.Monitor[T]) Source {
	mustNotBeNil("Monitor", m)
	return metric.One(monitorThing, metric.Object{Name: name, ID: m, Read: func() any { return m.Stats() }})
}

// Conns returns a Source of one Conns of package idle. For an idle.Listener, pass the
// result of its method Conns.
func Conns(name string, c *idle.Conns) Source {
	mustNotBeNil("Conns", c)
	return metric.One(connsThing, metric.Object{Name: name, ID: c, Read: func() any { return c.Stats() }})
}

// mustNotBeNil panics if p is nil.
func mustNotBeNil[T any](function string, p *T) {
	if p == nil {
		panic("observe: " + function + ": the argument must not be nil")
	}
}
