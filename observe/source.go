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

// A Source provides one thing, or several of a type, whose numbers an exporter exports.
// The functions of this package return Sources.
//
// The name of a thing becomes the value of a label. If two things of a type have the same
// name, the later one among the exporter's Sources becomes "name#2"; of Schedulers, the
// one that was made later. Bytes in a name that are not UTF-8 are replaced.
//
// A thing that several Sources provide is exported once. A name that was given to that
// thing alone, as with Scheduler, takes precedence over one from a list, as with
// Schedulers.
//
// If a thing panics when it is read, such as a zero Purgatory, only its read_failures are
// exported. The process and the other Sources are not affected. A durable store that
// panics in Stats counts as one that does not answer.
//
// The functions of this package panic if they are given nil, and the exporters panic if
// they are given a zero Source.
type Source = metric.Source

// Schedulers returns a Source of all open Schedulers of the process that have a name, by
// [timer.WithName], at the time of each export. It keeps none of them alive.
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

// Scheduler returns a Source of one Scheduler, which need not have a name of its own. The
// Scheduler is exported even after it is closed.
func Scheduler(name string, s *timer.Scheduler) Source {
	notNil("Scheduler", s)
	return metric.One(schedulers, schedulerObject(name, s))
}

func schedulerObject(name string, s *timer.Scheduler) metric.Object {
	return metric.Object{Name: name, ID: weak.Make(s), Read: func() any { return s.Stats() }}
}

// Keyed returns a Source of a Timers of package keyed.
func Keyed[K comparable, V any](name string, k *keyed.Timers[K, V]) Source {
	notNil("Keyed", k)
	return metric.One(keyedTimers, metric.Object{Name: name, ID: k, Read: func() any { return k.Len() }})
}

// Purgatory returns a Source of one Purgatory.
func Purgatory[K comparable](name string, p *purgatory.Purgatory[K]) Source {
	notNil("Purgatory", p)
	return metric.One(purgatories, metric.Object{Name: name, ID: p, Read: func() any { return p.Stats() }})
}

// Monitor returns a Source of one Monitor of package idle.
func Monitor[T any](name string, m *idle.Monitor[T]) Source {
	notNil("Monitor", m)
	return metric.One(monitors, metric.Object{Name: name, ID: m, Read: func() any { return m.Stats() }})
}

// Conns returns a Source of one Conns of package idle. For an idle.Listener, pass the
// result of its method Conns.
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
