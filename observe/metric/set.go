package metric

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tickless/tickless/timer"
)

// A Source is where the things of one kind are found whose numbers are exported.
type Source struct {
	Thing *Thing
	// Objects returns the things that there are now.
	Objects func() iter.Seq[Object]
	// Fixed says that these are always the same.
	Fixed bool
}

// An Object is a thing whose numbers are exported.
type Object struct {
	// Name is what its user calls it.
	Name string
	// ID is comparable, and equal for the same thing only.
	ID any
	// Read reads the numbers, as the sample for the Thing's metrics.
	Read func() any
	// Notes returns what happened to the thing lately, the oldest first; nil if it has no
	// such thing.
	Notes func() []Note
}

// One returns the Source of one thing. It panics if that has no name.
func One(thing *Thing, o Object) Source {
	if o.Name == "" {
		panic("observe: the name must not be empty")
	}
	return Source{Thing: thing, Fixed: true, Objects: func() iter.Seq[Object] {
		return func(yield func(Object) bool) { yield(o) }
	}}
}

// A Note is something that happened.
type Note struct {
	When time.Time
	// What it happened to, and its text.
	What, Text string
}

// A Reading is what has been read of one thing.
type Reading struct {
	Thing *Thing
	// Name is unique among the things of one kind.
	Name   string
	ID     any // the Object's
	Sample any
	// Err is why it could not be read, nil if it was.
	Err error
	// Notes is the Object's.
	Notes func() []Note

	failures uint64 // how often it could not be read
}

// Values calls yield with each part of a metric of the Thing and its value.
func (r *Reading) Values(m *Metric, yield func(part string, value float64)) {
	switch {
	case m.failures:
		yield("", float64(r.failures))
	case r.Err == nil:
		m.values(r.Sample, yield)
	}
}

// Histograms calls yield with each part of a histogram of the Thing.
func (r *Reading) Histograms(m *Metric, yield func(part string, h timer.Histogram)) {
	if r.Err == nil {
		m.histograms(r.Sample, yield)
	}
}

// Numbers returns all numbers of the Thing for JSON: by the short names of the metrics, and
// those with a label by its values. It has an error in place of what could not be read.
func (r *Reading) Numbers() map[string]any {
	numbers := make(map[string]any)
	if r.Err != nil {
		numbers["error"] = r.Err.Error()
	}
	for i := range r.Thing.Metrics {
		m := &r.Thing.Metrics[i]
		put := func(part string, value any) {
			name := r.Thing.Short(m)
			if m.Label == "" {
				numbers[name] = value
				return
			}
			parts, _ := numbers[name].(map[string]any)
			if parts == nil {
				parts = make(map[string]any)
				numbers[name] = parts
			}
			parts[part] = value
		}
		if m.Kind == Histogram {
			r.Histograms(m, func(part string, h timer.Histogram) { put(part, summary(h)) })
		} else {
			r.Values(m, func(part string, value float64) { put(part, value) })
		}
	}
	return numbers
}

// summary returns what Numbers has of a histogram, in seconds.
func summary(h timer.Histogram) map[string]float64 {
	return map[string]float64{
		"count": float64(h.Count()),
		"sum":   h.Sum(),
		"max":   h.Max().Seconds(),
		"p50":   h.Quantile(0.5).Seconds(),
		"p90":   h.Quantile(0.9).Seconds(),
		"p99":   h.Quantile(0.99).Seconds(),
		"p999":  h.Quantile(0.999).Seconds(),
	}
}

// A Set reads sources. It may be used by several goroutines at once.
type Set struct {
	sources []Source
	things  []*Thing

	mu    sync.Mutex
	names map[*Thing]map[any]string // by Object.ID
	// failures counts how often each thing could not be read. A thing that was always
	// read has no entry.
	failures map[*Thing]map[any]uint64
}

// NewSet makes a Set of the sources. Things that are always there have their names
// first. It panics if a source is the zero Source.
func NewSet(sources []Source) *Set {
	s := &Set{sources: slices.Clone(sources), names: make(map[*Thing]map[any]string), failures: make(map[*Thing]map[any]uint64)}
	fixed := make(map[*Thing][]Object)
	for i, source := range sources {
		if source.Thing == nil {
			panic(fmt.Sprintf("observe: source %d is the zero Source: the functions of package observe make Sources", i+1))
		}
		if s.names[source.Thing] == nil {
			s.names[source.Thing] = make(map[any]string)
			s.failures[source.Thing] = make(map[any]uint64)
			s.things = append(s.things, source.Thing)
		}
		if source.Fixed {
			fixed[source.Thing] = slices.AppendSeq(fixed[source.Thing], source.Objects())
		}
	}
	for thing, objects := range fixed {
		s.unique(thing, objects)
	}
	return s
}

// Things returns the kinds of things that the sources are of.
func (s *Set) Things() []*Thing { return s.things }

// Read reads all things that there are. One that has the name of another of its kind
// has a number after its name, "name#2", for as long as it exists. One that several
// sources have is read once. No lock is held while things are read. If one panics, that
// becomes its reading's Err: to look at a program must not end it.
func (s *Set) Read() []Reading { return s.read(true) }

// ReadAgain is Read for an exporter that reads twice to export once: its failures do not
// count.
func (s *Set) ReadAgain() []Reading { return s.read(false) }

func (s *Set) read(count bool) []Reading {
	named := make(map[*Thing][]Object)
	for _, source := range s.sources {
		for o := range source.Objects() {
			named[source.Thing] = append(named[source.Thing], o)
		}
	}
	var readings []Reading
	for _, thing := range s.things {
		for name, o := range s.unique(thing, named[thing]) {
			r := Reading{Thing: thing, Name: name, ID: o.ID, Notes: o.notes}
			r.Sample, r.Err = o.read()
			r.failures = s.failed(thing, o.ID, count && r.Err != nil)
			readings = append(readings, r)
		}
	}
	return readings
}

// read reads the numbers, and returns a panic as an error.
func (o *Object) read() (sample any, err error) {
	defer func() {
		if v := recover(); v != nil {
			sample, err = nil, fmt.Errorf("observe: panic: %v", v)
		}
	}()
	return o.Read(), nil
}

// notes returns the Object's Notes, or a panic as one.
func (o Object) notes() (all []Note) {
	if o.Notes == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			all = []Note{{When: time.Now(), What: "observe: panic", Text: fmt.Sprint(v)}}
		}
	}()
	return o.Notes()
}

// failed returns how often a thing could not be read. If now is true, it first counts one
// more.
func (s *Set) failed(thing *Thing, id any, now bool) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now {
		s.failures[thing][id]++
	}
	return s.failures[thing][id]
}

// unique returns the objects, each once, by names that nothing else of the kind has. A
// name that an object has been given stays its own.
func (s *Set) unique(thing *Thing, objects []Object) iter.Seq2[string, Object] {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.names[thing]
	names := make(map[any]string, len(objects))
	taken := make(map[string]bool, len(objects))
	for _, o := range objects {
		if name, ok := before[o.ID]; ok {
			names[o.ID] = name
			taken[name] = true
		}
	}
	list := make([]Object, 0, len(objects))
	seen := make(map[any]bool, len(objects))
	for _, o := range objects {
		if seen[o.ID] {
			continue
		}
		seen[o.ID] = true
		list = append(list, o)
		if _, ok := names[o.ID]; ok {
			continue
		}
		base := strings.ToValidUTF8(o.Name, "\uFFFD")
		name := base
		for n := 2; taken[name]; n++ {
			name = base + "#" + strconv.Itoa(n)
		}
		names[o.ID] = name
		taken[name] = true
	}
	s.names[thing] = names
	for id := range s.failures[thing] {
		if !seen[id] {
			delete(s.failures[thing], id)
		}
	}
	return func(yield func(string, Object) bool) {
		for _, o := range list {
			if !yield(names[o.ID], o) {
				return
			}
		}
	}
}
