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
	// Objects returns the things that exist now.
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
	// Read returns a sample: the value that contains the numbers, such as a timer.Stats.
	Read func() any
	// Notes returns the latest events of the thing, oldest first. Notes may be nil.
	Notes func() []Note
}

// One returns a Source of one thing, o. It panics if o has no name.
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
	// What says what the event is about, such as a task. Text describes the event.
	What, Text string
}

// A Reading contains the numbers that have been read of one thing.
type Reading struct {
	Thing *Thing
	// Name is unique among the things of the same type.
	Name   string
	ID     any // Object.ID
	Sample any // what Object.Read returned
	// Err is the reason why reading failed, or nil.
	Err error
	// Notes returns the Notes of the Object.
	Notes func() []Note

	numFailures uint64 // the number of failed reads
}

// Values calls yield for each part of metric m, with the part's value.
func (r *Reading) Values(m *Metric, yield func(part string, value float64)) {
	switch {
	case m.countsFailures:
		yield("", float64(r.numFailures))
	case r.Err == nil:
		m.readValues(r.Sample, yield)
	}
}

// Histograms calls yield for each part of metric m, with the part's histogram.
func (r *Reading) Histograms(m *Metric, yield func(part string, h timer.Histogram)) {
	if r.Err == nil {
		m.readHistograms(r.Sample, yield)
	}
}

// Numbers returns the numbers of the thing, for JSON, by the short names of its metrics.
// For a metric with a label, it returns a map from values of the label to numbers. If
// reading failed, "error" is the reason.
func (r *Reading) Numbers() map[string]any {
	numbers := make(map[string]any)
	if r.Err != nil {
		numbers["error"] = r.Err.Error()
	}
	for i := range r.Thing.Metrics {
		m := &r.Thing.Metrics[i]
		setNumber := func(part string, value any) {
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
			r.Histograms(m, func(part string, h timer.Histogram) { setNumber(part, histogramNumbers(h)) })
		} else {
			r.Values(m, func(part string, value float64) { setNumber(part, value) })
		}
	}
	return numbers
}

// histogramNumbers returns the numbers of a histogram for Numbers, in seconds.
func histogramNumbers(h timer.Histogram) map[string]float64 {
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

	mu        sync.Mutex
	namesByID map[*Thing]map[any]string // by Object.ID
	// failuresByID counts the failed reads of each thing, by Object.ID.
	failuresByID map[*Thing]map[any]uint64
}

// NewSet returns a Set of the sources. The things of Fixed sources get their names first,
// so that they have the same names in every Set. NewSet panics if a source is the zero
// Source.
func NewSet(sources []Source) *Set {
	s := &Set{sources: slices.Clone(sources), namesByID: make(map[*Thing]map[any]string), failuresByID: make(map[*Thing]map[any]uint64)}
	fixedObjects := make(map[*Thing][]Object)
	for i, source := range sources {
		if source.Thing == nil {
			panic(fmt.Sprintf("observe: source %d is the zero Source: the functions of package observe make Sources", i+1))
		}
		if s.namesByID[source.Thing] == nil {
			s.namesByID[source.Thing] = make(map[any]string)
			s.failuresByID[source.Thing] = make(map[any]uint64)
			s.things = append(s.things, source.Thing)
		}
		if source.Fixed {
			fixedObjects[source.Thing] = slices.AppendSeq(fixedObjects[source.Thing], source.Objects())
		}
	}
	for thing, objects := range fixedObjects {
		s.uniquelyNamed(thing, objects)
	}
	return s
}

// Things returns the Things of the sources.
func (s *Set) Things() []*Thing { return s.things }

// Read reads each thing of the sources once. If two things of a type have the same name,
// the second gets a name such as "name#2", for as long as it exists. If reading a thing
// panics, the panic is in Err of the Reading.
func (s *Set) Read() []Reading { return s.readAll(true) }

// ReadAgain is like Read, but does not count failures. It is the second read of an
// exporter that reads twice for one export.
func (s *Set) ReadAgain() []Reading { return s.readAll(false) }

func (s *Set) readAll(countFailed bool) []Reading {
	objects := make(map[*Thing][]Object)
	for _, source := range s.sources {
		for o := range source.Objects() {
			objects[source.Thing] = append(objects[source.Thing], o)
		}
	}
	var readings []Reading
	for _, thing := range s.things {
		for name, o := range s.uniquelyNamed(thing, objects[thing]) {
			r := Reading{Thing: thing, Name: name, ID: o.ID, Notes: o.readNotes}
			r.Sample, r.Err = o.read()
			r.numFailures = s.countFailures(thing, o.ID, countFailed && r.Err != nil)
			readings = append(readings, r)
		}
	}
	return readings
}

// read returns the sample. If o.Read panics, read returns the panic as an error.
func (o *Object) read() (sample any, err error) {
	defer func() {
		if v := recover(); v != nil {
			sample, err = nil, fmt.Errorf("observe: panic: %v", v)
		}
	}()
	return o.Read(), nil
}

// readNotes returns the Object's Notes. If o.Notes panics, readNotes returns the panic as
// a Note.
func (o Object) readNotes() (notes []Note) {
	if o.Notes == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			notes = []Note{{When: time.Now(), What: "observe: panic", Text: fmt.Sprint(v)}}
		}
	}()
	return o.Notes()
}

// countFailures returns the number of failed reads of a thing. If failed is true, the
// present read has failed too, and is counted.
func (s *Set) countFailures(thing *Thing, id any, failed bool) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failed {
		s.failuresByID[thing][id]++
	}
	return s.failuresByID[thing][id]
}

// uniquelyNamed returns each object once, with a name that is unique within its type. An
// object keeps its first name.
func (s *Set) uniquelyNamed(thing *Thing, objects []Object) iter.Seq2[string, Object] {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldNames := s.namesByID[thing]
	names := make(map[any]string, len(objects))
	takenNames := make(map[string]bool, len(objects))
	for _, o := range objects {
		if name, ok := oldNames[o.ID]; ok {
			names[o.ID] = name
			takenNames[name] = true
		}
	}
	distinctObjects := make([]Object, 0, len(objects))
	seenIDs := make(map[any]bool, len(objects))
	for _, o := range objects {
		if seenIDs[o.ID] {
			continue
		}
		seenIDs[o.ID] = true
		distinctObjects = append(distinctObjects, o)
		if _, ok := names[o.ID]; ok {
			continue
		}
		baseName := strings.ToValidUTF8(o.Name, "\uFFFD")
		name := baseName
		for n := 2; takenNames[name]; n++ {
			name = baseName + "#" + strconv.Itoa(n)
		}
		names[o.ID] = name
		takenNames[name] = true
	}
	s.namesByID[thing] = names
	for id := range s.failuresByID[thing] {
		if !seenIDs[id] {
			delete(s.failuresByID[thing], id)
		}
	}
	return func(yield func(string, Object) bool) {
		for _, o := range distinctObjects {
			if !yield(names[o.ID], o) {
				return
			}
		}
	}
}
