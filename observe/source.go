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

// A Source is one thing, or several of a kind, whose numbers are exported. The functions
// of this package make Sources, for the exporters.
//
// The name of a thing becomes the value of a label. If two things of a kind have the
// same name, the one that comes later among the exporter's Sources is "name#2": of
// Schedulers the one that was made later. Bytes in a name that are not UTF-8 are replaced.
//
// A thing that several Sources have is exported once. A name that was given for that thing
// alone, as with Scheduler, goes before one that came with many, as with Schedulers.
//
// If a thing panics when it is read, such as a Purgatory that New has not made, only its
// read_failures are exported. The process and the other Sources go on. A durable store that
// panics in Stats counts as one that does not answer.
//
// The functions of this package panic if they are given nil, and the exporters if they
// are given a zero Source.
type Source = metric.Source

// Schedulers is all Schedulers of the process that have names and are not closed, by
// [timer.WithName], at the time that an exporter reads it. It keeps none of them alive.
func Schedulers() Source {
	return metric.Source{Thing: schedulers, Objects: func() iter.Seq[metric.Object] {
		return func(yield func(metric.Object) bool) {
			for s := range timer.Schedulers() {
				if !yield(schedulerObject(s.Name(), s)) {
					return
				}
			}
		}
	}}
}

// Scheduler is one Scheduler, which need not have a name of its own. It is exported when
// it is closed, too.
func Scheduler(name string, s *timer.Scheduler) Source {
	notNil("Scheduler", s)
	return metric.One(schedulers, schedulerObject(name, s))
}

func schedulerObject(name string, s *timer.Scheduler) metric.Object {
	return metric.Object{Name: name, ID: weak.Make(s), Read: func() any { return s.Stats() }}
}

// Keyed is the Timers of package keyed.
func Keyed[K comparable, V any](name string, k *keyed.Timers[K, V]) Source {
	notNil("Keyed", k)
	return metric.One(keyeds, metric.Object{Name: name, ID: k, Read: func() any { return k.Len() }})
}

// Purgatory is one Purgatory.
func Purgatory[K comparable](name string, p *purgatory.Purgatory[K]) Source {
	notNil("Purgatory", p)
	return metric.One(purgatories, metric.Object{Name: name, ID: p, Read: func() any { return p.Stats() }})
}

// Monitor is one Monitor of package idle.
func Monitor[T any](name string, m *idle.Monitor[T]) Source {
	notNil("Monitor", m)
	return metric.One(monitors, metric.Object{Name: name, ID: m, Read: func() any { return m.Stats() }})
}

// Conns is one Conns of package idle. That of an idle.Listener is what its method Conns
// returns.
func Conns(name string, c *idle.Conns) Source {
	notNil("Conns", c)
	return metric.One(conns, metric.Object{Name: name, ID: c, Read: func() any { return c.Stats() }})
}

// notNil panics if p is nil.
func notNil[T any](function string, p *T) {
	if p == nil {
		panic("observe: " + function + ": nil " + function)
	}
}
