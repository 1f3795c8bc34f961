package prom

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// A Collector is a prometheus.Collector for the metrics of its Sources. Make one with
// [New].
//
// Give all Sources to one Collector: a registry refuses a second one with the same
// metrics. If a program needs several Collectors, register each with
// prometheus.WrapRegistererWith: with the same label, and a different value for each.
type Collector struct {
	set   *metric.Set
	descs map[*metric.Thing][]*prometheus.Desc // in the order of Thing.Metrics
}

var _ prometheus.Collector = (*Collector)(nil)

// errZero is the error that a registry returns for a Collector that was not made by
// New.
var errZero = errors.New("prom: the zero Collector: call prom.New")

// New returns a Collector for the sources. Without sources, it exports
// observe.Schedulers. It panics if a source is the zero Source.
func New(sources ...observe.Source) *Collector {
	if len(sources) == 0 {
		sources = []observe.Source{observe.Schedulers()}
	}
	c := &Collector{set: metric.NewSet(sources), descs: make(map[*metric.Thing][]*prometheus.Desc)}
	for _, thing := range c.set.Things() {
		for i := range thing.Metrics {
			m := &thing.Metrics[i]
			labels := []string{thing.Label}
			if m.Label != "" {
				labels = append(labels, m.Label)
			}
			c.descs[thing] = append(c.descs[thing], prometheus.NewDesc(m.Prometheus(), m.Help, labels, nil))
		}
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	if c == nil || c.set == nil {
		out <- prometheus.NewInvalidDesc(errZero)
		return
	}
	for _, descs := range c.descs {
		for _, desc := range descs {
			out <- desc
		}
	}
}

// Collect implements prometheus.Collector. If reading a thing panics, Collect sends only
// the thing's read_failures.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	if c == nil || c.set == nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(errZero), errZero)
		return
	}
	for _, r := range c.set.Read() {
		for i := range r.Thing.Metrics {
			collect(out, c.descs[r.Thing][i], &r.Thing.Metrics[i], &r)
		}
	}
}

// collect sends the values of metric m in reading r.
func collect(out chan<- prometheus.Metric, desc *prometheus.Desc, m *metric.Metric, r *metric.Reading) {
	if m.Kind == metric.Histogram {
		r.Histograms(m, func(part string, h timer.Histogram) {
			out <- newHistogram(desc, h, labels(m, r, part)...)
		})
		return
	}
	kind := prometheus.GaugeValue
	if m.Kind == metric.Counter {
		kind = prometheus.CounterValue
	}
	r.Values(m, func(part string, value float64) {
		out <- prometheus.MustNewConstMetric(desc, kind, value, labels(m, r, part)...)
	})
}

// labels returns the label values of one part of a metric.
func labels(m *metric.Metric, r *metric.Reading, part string) []string {
	if m.Label == "" {
		return []string{r.Name}
	}
	return []string{r.Name, metric.Text(part)}
}
