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

// A Source returns things of one type, whose numbers are exported.
type Source struct {
	Thing *Thing
	// Objects returns the present things.
	Objects func() iter.Seq[Object]
	// Fixed is true if Objects always returns the same things.
	Fixed bool
}

// An Object is one thing whose numbers are exported.
type Object struct {
	// Name is the thing's name, given by the user.
	Name string
	// ID is comparable. Two Objects of the same thing have equal IDs.
	ID any
	// Read returns the sample for the Thing's metrics.
	Read func() any
	// Notes returns the latest events of the thing, oldest first. It is nil if the thing
	// has none.
	Notes func() []Note
}

// One returns the Source of one thing. It panics if o has no name.
func One(thing *Thing, o Object) Source {
	if o.Name == "" {
		panic("observe: the name must not be empty")
	}
	return Source{Thing: thing, Fixed: true, Objects: func() iter.Seq[Object] {
		return func(yield func(Object) bool) { yield(o) }
	}}
}

// A Note describes an event.
type Note struct {
	When time.Time
	// What names the affected part of the thing. Text describes the event.
	What, Text string
}

// A Reading is what has been read of one thing.
type Reading struct {
	Thing *Thing
	// Name is unique among the things of the same type.
	Name   string
	ID     any // the Object's
	Sample any
	// Err says why the thing could not be read. It is nil if it was read.
	Err error
	// Notes is the Object's.
	Notes func() []Note

	failures uint64 // the number of failed reads
}

// Values calls yield with each part of metric m and its value.
func (r *Reading) Values(m *Metric, yield func(part string, value float64)) {
	switch {
	case m.failures:
		yield("", float64(r.failures))
	case r.Err == nil:
		m.values(r.Sample, yield)
	}
}

// Histograms calls yield with each part of histogram m.
func (r *Reading) Histograms(m *Metric, yield func(part string, h timer.Histogram)) {
	if r.Err == nil {
		m.histograms(r.Sample, yield)
	}
}

// Numbers returns all numbers of the Thing for JSON. It maps the short name of a metric
// to its number, or to a map by values of the label. If reading failed, "error" has the
// reason.
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

// summary returns the numbers of a histogram for Numbers, in seconds.
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

// A Set reads sources. Several goroutines may use it at once.
type Set struct {
	sources []Source
	things  []*Thing

	mu    sync.Mutex
	names map[*Thing]map[any]string // by Object.ID
	// failures counts the failed reads of each thing. A thing that was always read has no
	// entry.
	failures map[*Thing]map[any]uint64
}

// NewSet returns a Set of the sources. Things of Fixed sources get their names before
// others. NewSet panics if a source is the zero Source.
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

// Things returns the Things of the sources.
func (s *Set) Things() []*Thing { return s.things }

// Read reads all things. If a thing has the same name as another of its type, Read
// appends a number, "name#2", which the thing keeps as long as it exists. A thing that
// several sources return is read once. No lock is held while things are read. If a thing
// panics, its Reading has the panic as Err: reading must not end the program.
func (s *Set) Read() []Reading { return s.read(true) }

// ReadAgain is like Read, for an exporter that reads twice for one export. It does not
// count failures.
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
			r.failures = s.countFailures(thing, o.ID, count && r.Err != nil)
			readings = append(readings, r)
		}
	}
	return readings
}

// read returns the sample, or a panic as an error.
func (o *Object) read() (sample any, err error) {
	defer func() {
		if v := recover(); v != nil {
			sample, err = nil, fmt.Errorf("observe: panic: %v", v)
		}
	}()
	return o.Read(), nil
}

// notes returns the Object's Notes, or a panic as a Note.
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

// countFailures returns the number of failed reads of a thing. If now is true, it counts one
// more first.
func (s *Set) countFailures(thing *Thing, id any, now bool) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now {
		s.failures[thing][id]++
	}
	return s.failures[thing][id]
}

// unique returns each object once, with a name that is unique within its type. An object
// keeps the name that it was given first.
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
