package metric

import (
	"strings"

	"github.com/tickless/tickless/timer"
)

// A Kind is the type of a metric.
type Kind int

const (
	// Counter only grows.
	Counter Kind = iota
	// UpDownCounter grows and shrinks. The values of several things may be added up, for
	// example of all Schedulers.
	UpDownCounter
	// Gauge is an estimate, or a value whose sum over several things means nothing.
	Gauge
	// Histogram counts durations.
	Histogram
)

func (k Kind) String() string {
	return [...]string{"counter", "up-down counter", "gauge", "histogram"}[k]
}

// A Thing describes a type of thing that has numbers, such as Scheduler. It lists the
// metrics of this type.
type Thing struct {
	// Name is in the names of all metrics of the Thing, after "tickless.".
	Name string
	// Label is the label whose value is the name of a thing of this type.
	Label string
	// Title is the heading above the numbers of a thing of this type, on the debug page.
	Title string
	// Metrics are the metrics of each thing, in the order of the documentation.
	Metrics []Metric
	// Notes is the heading above an Object's Notes, such as "Latest dead letters".
	Notes string
}

// A Metric describes one metric of a Thing. A Reading has the values.
type Metric struct {
	// Name begins with "tickless." and the Thing's name.
	Name string
	Kind Kind
	// Unit is a unit in the notation of UCUM: "s" for seconds, "1" for a share, or the
	// name of the counted thing in braces, such as "{timer}".
	Unit string
	// Help is one sentence, without a full stop.
	Help string
	// Label distinguishes the parts of a metric that has several numbers. It is "" if
	// the metric has only one number.
	Label string

	// readValues calls yield for each number of the metric in a sample. part is the value
	// of Label, or "" without a Label.
	readValues func(sample any, yield func(part string, value float64))
	// readHistograms does the same for a metric that is a histogram.
	readHistograms func(sample any, yield func(part string, h timer.Histogram))
	// countsFailures is true if the metric is the count of failed reads.
	countsFailures bool
}

// Seconds reports whether the metric is measured in seconds.
func (m *Metric) Seconds() bool { return m.Unit == "s" }

// Prometheus returns the metric's name in Prometheus, as OpenTelemetry prescribes.
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

// A Table builds a Thing whose numbers are read from a sample of type T.
type Table[T any] struct {
	thing *Thing
}

// NewTable returns an empty Table for a Thing with the given name and label.
func NewTable[T any](name, label string) Table[T] {
	return Table[T]{&Thing{Name: name, Label: label, Title: label}}
}

// Titled sets the Thing's title, and returns t.
func (t Table[T]) Titled(title string) Table[T] {
	t.thing.Title = title
	return t
}

// Noted sets the heading above Notes, and returns t.
func (t Table[T]) Noted(notes string) Table[T] {
	t.thing.Notes = notes
	return t
}

// ReadFailures is the short name of the metric that every Thing has.
const ReadFailures = "read_failures"

// Thing adds the last metric, the count of failed reads, and returns the Thing. Call it
// when all other metrics have been added.
func (t Table[T]) Thing() *Thing {
	t.addMetric(Metric{Kind: Counter, Name: ReadFailures, Unit: "{failure}", countsFailures: true,
		Help: "Reads that panicked; the other numbers are then missing"})
	return t.thing
}

// Add adds a metric that is one number.
func (t Table[T]) Add(kind Kind, name, unit, help string, read func(sample T) float64) {
	t.addMetric(Metric{Kind: kind, Name: name, Unit: unit, Help: help,
		readValues: func(sample any, yield func(string, float64)) { yield("", read(sample.(T))) },
	})
}

// AddParts adds a metric that has several numbers, distinguished by a label.
func (t Table[T]) AddParts(kind Kind, name, unit, label, help string, read func(sample T, yield func(part string, value float64))) {
	t.addMetric(Metric{Kind: kind, Name: name, Unit: unit, Label: label, Help: help,
		readValues: func(sample any, yield func(string, float64)) { read(sample.(T), yield) },
	})
}

// AddHistograms adds a metric that has histograms of durations, distinguished by a label.
// If label is "", it has one histogram, and part is "".
func (t Table[T]) AddHistograms(name, label, help string, read func(sample T, yield func(part string, h timer.Histogram))) {
	t.addMetric(Metric{Kind: Histogram, Name: name, Unit: "s", Label: label, Help: help,
		readHistograms: func(sample any, yield func(string, timer.Histogram)) { read(sample.(T), yield) },
	})
}

func (t Table[T]) addMetric(m Metric) {
	m.Name = "tickless." + t.thing.Name + "." + m.Name
	t.thing.Metrics = append(t.thing.Metrics, m)
}
