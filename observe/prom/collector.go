package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tickless/tickless/internal/metric"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/timer"
)

// A Collector is a prometheus.Collector of what its Sources have.
type Collector struct {
	set   *metric.Set
	descs map[*metric.Thing][]*prometheus.Desc // in the order of Thing.Metrics
}

var _ prometheus.Collector = (*Collector)(nil)

// New makes a Collector of the sources; without any, of observe.Schedulers.
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
	for _, descs := range c.descs {
		for _, desc := range descs {
			out <- desc
		}
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	for _, r := range c.set.Read() {
		for i := range r.Thing.Metrics {
			collect(out, c.descs[r.Thing][i], &r.Thing.Metrics[i], r)
		}
	}
}

// collect sends what has been read of one metric.
func collect(out chan<- prometheus.Metric, desc *prometheus.Desc, m *metric.Metric, r metric.Reading) {
	if m.Kind == metric.Histogram {
		m.Histograms(r.Sample, func(part string, h timer.Histogram) {
			out <- newHistogram(desc, h, labels(m, r, part)...)
		})
		return
	}
	kind := prometheus.GaugeValue
	if m.Kind == metric.Counter {
		kind = prometheus.CounterValue
	}
	m.Values(r.Sample, func(part string, value float64) {
		out <- prometheus.MustNewConstMetric(desc, kind, value, labels(m, r, part)...)
	})
}

// labels returns the values of the labels of a part of a metric.
func labels(m *metric.Metric, r metric.Reading, part string) []string {
	if m.Label == "" {
		return []string{r.Name}
	}
	return []string{r.Name, metric.Text(part)}
}
