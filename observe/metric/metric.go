package metric

import (
	"strings"

	"github.com/tickless/tickless/timer"
)

// A Kind says how a metric's value behaves.
type Kind int

const (
	// Counter only ever grows.
	Counter Kind = iota
	// UpDownCounter grows and shrinks. The values of several things can be added up.
	UpDownCounter
	// Gauge is a value of which sums mean nothing, or an estimate.
	Gauge
	// Histogram counts durations.
	Histogram
)

func (k Kind) String() string {
	return [...]string{"counter", "up-down counter", "gauge", "histogram"}[k]
}

// A Thing is a kind of thing that has numbers.
type Thing struct {
	// Name is what its metrics' names begin with, after "tickless.".
	Name string
	// Label is the label that tells things of the kind apart.
	Label string
	// Title is what a page calls such a thing.
	Title string
	// Metrics are its metrics, in the order of the documentation.
	Metrics []Metric
	// Notes is what the Notes of an Object are, such as "Latest dead letters".
	Notes string
}

// A Metric is one metric of a Thing. A Reading has its values, or its histograms.
type Metric struct {
	// Name begins with "tickless." and the Thing's name.
	Name string
	Kind Kind
	// Unit is in the notation of UCUM: "s", "1" for a share, or what is counted, in braces.
	Unit string
	// Help is one sentence, without a full stop.
	Help string
	// Label tells the parts of the metric apart, "" if it is one number.
	Label string

	// values calls yield with each part of the metric and its value, of what the Source
	// has read. The part is "" if the metric has no Label.
	values func(sample any, yield func(part string, value float64))
	// histograms calls yield with each part of the metric and its histogram, likewise; not
	// at all if nobody measures it.
	histograms func(sample any, yield func(part string, h timer.Histogram))
	// failures says that the metric is how often the thing could not be read.
	failures bool
}

// Seconds reports whether the metric is measured in seconds.
func (m *Metric) Seconds() bool { return m.Unit == "s" }

// Prometheus returns the metric's name in Prometheus, which is what OpenTelemetry's
// mapping makes of Name.
func (m *Metric) Prometheus() string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	switch {
	case m.Seconds():
		name += "_seconds"
	case m.Unit == "1" && m.Kind == Gauge:
		name += "_ratio"
	}
	if m.Kind == Counter {
		name += "_total"
	}
	return name
}

// Short returns the metric's name without "tickless." and the Thing's name.
func (t *Thing) Short(m *Metric) string {
	return strings.TrimPrefix(m.Name, "tickless."+t.Name+".")
}

// A Table makes metrics of things whose sample is a T.
type Table[T any] struct {
	thing *Thing
}

// NewTable begins the table of a kind of thing.
func NewTable[T any](name, label string) Table[T] {
	return Table[T]{&Thing{Name: name, Label: label, Title: label}}
}

// Titled sets the Thing's title, and returns t.
func (t Table[T]) Titled(title string) Table[T] {
	t.thing.Title = title
	return t
}

// Noted sets what the Notes of an Object are, and returns t.
func (t Table[T]) Noted(notes string) Table[T] {
	t.thing.Notes = notes
	return t
}

// ReadFailures is the short name of the metric that every Thing has.
const ReadFailures = "read_failures"

// Thing returns what the table describes. It ends the table: every thing counts how often
// it could not be read.
func (t Table[T]) Thing() *Thing {
	t.add(Metric{Kind: Counter, Name: ReadFailures, Unit: "{failure}", failures: true,
		Help: "Times that its other numbers could not be read and are missing, because reading them panicked"})
	return t.thing
}

// Add adds a metric that is one number.
func (t Table[T]) Add(kind Kind, name, unit, help string, read func(sample T) float64) {
	t.add(Metric{Kind: kind, Name: name, Unit: unit, Help: help,
		values: func(sample any, yield func(string, float64)) { yield("", read(sample.(T))) },
	})
}

// AddParts adds a metric that has several numbers, told apart by a label.
func (t Table[T]) AddParts(kind Kind, name, unit, label, help string, read func(sample T, yield func(part string, value float64))) {
	t.add(Metric{Kind: kind, Name: name, Unit: unit, Label: label, Help: help,
		values: func(sample any, yield func(string, float64)) { read(sample.(T), yield) },
	})
}

// AddHistogram adds a histogram of durations. read returns false if nobody measures it.
func (t Table[T]) AddHistogram(name, help string, read func(sample T) (timer.Histogram, bool)) {
	t.add(Metric{Kind: Histogram, Name: name, Unit: "s", Help: help,
		histograms: func(sample any, yield func(string, timer.Histogram)) {
			if h, ok := read(sample.(T)); ok {
				yield("", h)
			}
		},
	})
}

// AddHistograms adds a metric that has several histograms of durations, told apart by a
// label.
func (t Table[T]) AddHistograms(name, label, help string, read func(sample T, yield func(part string, h timer.Histogram))) {
	t.add(Metric{Kind: Histogram, Name: name, Unit: "s", Label: label, Help: help,
		histograms: func(sample any, yield func(string, timer.Histogram)) { read(sample.(T), yield) },
	})
}

func (t Table[T]) add(m Metric) {
	m.Name = "tickless." + t.thing.Name + "." + m.Name
	t.thing.Metrics = append(t.thing.Metrics, m)
}
