package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// A histogram is both a native and a classic histogram. The configuration of Prometheus
// decides which one it takes.
type histogram struct {
	prometheus.Metric // the native one
	classicBuckets    []*dto.Bucket
}

func newHistogram(desc *prometheus.Desc, h timer.Histogram, labels ...string) prometheus.Metric {
	e := metric.Exponentials(h.Buckets())
	nativeCounts := make(map[int]int64, len(e.Counts))
	for i, n := range e.Counts {
		if n > 0 {
			nativeCounts[e.Offset+i+1] = int64(n) // bucket i of Prometheus ends at base^i, not at base^(i+1)
		}
	}
	m := histogram{
		Metric: prometheus.MustNewConstNativeHistogram(desc, h.Count(), h.Sum(), nativeCounts, nil, e.Zero,
			metric.Scale, metric.ZeroThreshold, time.Time{}, labels...),
	}
	bucketCounts := metric.Counts(h.Buckets())
	var cumulativeCount uint64
	for i, bound := range metric.Bounds {
		cumulativeCount += bucketCounts[i]
		m.classicBuckets = append(m.classicBuckets, &dto.Bucket{UpperBound: pointerTo(bound), CumulativeCount: pointerTo(cumulativeCount)})
	}
	return m
}

// Write implements prometheus.Metric.
func (m histogram) Write(out *dto.Metric) error {
	if err := m.Metric.Write(out); err != nil {
		return err
	}
	out.Histogram.Bucket = m.classicBuckets
	out.Histogram.CreatedTimestamp = nil // unknown; otherwise it would be in the year 1
	return nil
}

func pointerTo[T any](v T) *T { return &v }
