package otel

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

var _ sdkmetric.Producer = (*Exporter)(nil)

// Produce implements sdkmetric.Producer. It returns the histograms. It returns an error
// if ctx has ended or e was not made by New.
func (e *Exporter) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e == nil || e.metricSet == nil {
		return nil, errZeroExporter
	}
	// ReadAgain does not count failures. A reader collects the instruments first, and
	// they have already counted the failures.
	readings, now := e.metricSet.ReadAgain(), time.Now()
	scopeMetrics := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: scopeName}}
	for _, thing := range e.metricSet.Things() {
		for i := range thing.Metrics {
			m := &thing.Metrics[i]
			if m.Kind != metric.Histogram {
				continue
			}
			if data := e.histogramsOf(thing, m, readings, now); data != nil {
				scopeMetrics.Metrics = append(scopeMetrics.Metrics, metricdata.Metrics{
					Name: m.Name, Description: m.Help, Unit: m.Unit, Data: data,
				})
			}
		}
	}
	if len(scopeMetrics.Metrics) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{scopeMetrics}, nil
}

// histogramsOf returns the histograms of a metric, of all sources. It returns nil if
// there are none.
func (e *Exporter) histogramsOf(thing *metric.Thing, m *metric.Metric, readings []metric.Reading, now time.Time) metricdata.Aggregation {
	var explicit []metricdata.HistogramDataPoint[float64]
	var exponential []metricdata.ExponentialHistogramDataPoint[float64]
	for _, r := range readings {
		if r.Thing != thing {
			continue
		}
		r.Histograms(m, func(part string, h timer.Histogram) {
			attrs := attribute.NewSet(attributes(m, &r, part)...)
			if e.exponential {
				exponential = append(exponential, newExponentialPoint(h, attrs, e.startTime, now))
			} else {
				explicit = append(explicit, newExplicitPoint(h, attrs, e.startTime, now))
			}
		})
	}
	switch {
	case exponential != nil:
		return metricdata.ExponentialHistogram[float64]{DataPoints: exponential, Temporality: metricdata.CumulativeTemporality}
	case explicit != nil:
		return metricdata.Histogram[float64]{DataPoints: explicit, Temporality: metricdata.CumulativeTemporality}
	}
	return nil
}

func newExplicitPoint(h timer.Histogram, attributes attribute.Set, begin, now time.Time) metricdata.HistogramDataPoint[float64] {
	p := metricdata.HistogramDataPoint[float64]{
		Attributes: attributes, StartTime: begin, Time: now,
		Count: h.Count(), Sum: h.Sum(),
		Bounds: slices.Clone(metric.Bounds), BucketCounts: metric.Counts(h.Buckets()),
	}
	if h.Count() > 0 {
		p.Max = metricdata.NewExtrema(h.Max().Seconds())
	}
	return p
}

func newExponentialPoint(h timer.Histogram, attributes attribute.Set, begin, now time.Time) metricdata.ExponentialHistogramDataPoint[float64] {
	buckets := metric.Exponentials(h.Buckets())
	p := metricdata.ExponentialHistogramDataPoint[float64]{
		Attributes: attributes, StartTime: begin, Time: now,
		Count: h.Count(), Sum: h.Sum(),
		Scale: metric.Scale, ZeroCount: buckets.Zero, ZeroThreshold: metric.ZeroThreshold,
		PositiveBucket: metricdata.ExponentialBucket{Offset: int32(buckets.Offset), Counts: buckets.Counts},
	}
	if h.Count() > 0 {
		p.Max = metricdata.NewExtrema(h.Max().Seconds())
	}
	return p
}
