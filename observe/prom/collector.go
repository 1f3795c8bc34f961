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
// Give all Sources to one Collector: a registry refuses a second Collector with the same
// metrics. If a program needs several Collectors, register each with
// prometheus.WrapRegistererWith: with the same label, and a different value for each.
type Collector struct {
	metricSet *metric.Set
	descs     map[*metric.Thing][]*prometheus.Desc // in the order of Thing.Metrics
}

var _ prometheus.Collector = (*Collector)(nil)

// errZeroCollector is the error that a registry returns for a Collector that was not made
// by New.
var errZeroCollector = errors.New("prom: the zero Collector: call prom.New")

// New returns a Collector for the sources. Without sources, it exports
// observe.Schedulers. It panics if a source is the zero Source.
func New(sources ...observe.Source) *Collector {
	if len(sources) == 0 {
		sources = []observe.Source{observe.Schedulers()}
	}
	c := &Collector{metricSet: metric.NewSet(sources), descs: make(map[*metric.Thing][]*prometheus.Desc)}
	for _, thing := range c.metricSet.Things() {
		for i := range thing.Metrics {
			m := &thing.Metrics[i]
			labelNames := []string{thing.Label}
			if m.Label != "" {
				labelNames = append(labelNames, m.Label)
			}
			c.descs[thing] = append(c.descs[thing], prometheus.NewDesc(m.Prometheus(), m.Help, labelNames, nil))
		}
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	if c == nil || c.metricSet == nil {
		out <- prometheus.NewInvalidDesc(errZeroCollector)
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
	if c == nil || c.metricSet == nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(errZeroCollector), errZeroCollector)
		return
	}
	for _, r := range c.metricSet.Read() {
		for i := range r.Thing.Metrics {
			sendMetric(out, c.descs[r.Thing][i], &r.Thing.Metrics[i], &r)
		}
	}
}

// sendMetric sends the values of metric m in reading r to out.
func sendMetric(out chan<- prometheus.Metric, desc *prometheus.Desc, m *metric.Metric, r *metric.Reading) {
	if m.Kind == metric.Histogram {
		r.Histograms(m, func(part string, h timer.Histogram) {
			out <- newHistogram(desc, h, labelValues(m, r, part)...)
		})
		return
	}
	valueType := prometheus.GaugeValue
	if m.Kind == metric.Counter {
		valueType = prometheus.CounterValue
	}
	r.Values(m, func(part string, value float64) {
		out <- prometheus.MustNewConstMetric(desc, valueType, value, labelValues(m, r, part)...)
	})
}

// labelValues returns the label values of one part of a metric.
func labelValues(m *metric.Metric, r *metric.Reading, part string) []string {
	if m.Label == "" {
		return []string{r.Name}
	}
	return []string{r.Name, metric.Text(part)}
}
