package otel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelmetric "go.opentelemetry.io/otel/metric"

	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
)

// scopeName is the name of the instrumentation scope.
const scopeName = "github.com/tickless/tickless/observe/otel"

// An Exporter exports the metrics of its Sources: counters and gauges through instruments
// that Register creates, and histograms through Produce.
type Exporter struct {
	metricSet   *metric.Set
	startTime   time.Time // the time of New: the start time of exported histograms
	exponential bool      // export exponential histograms
}

// errZeroExporter is the error of an Exporter that was not made by New.
var errZeroExporter = errors.New("otel: the zero Exporter: call otel.New")

// New returns an Exporter of the sources. Without sources, it exports observe.Schedulers.
// New panics if a source is the zero Source.
func New(sources ...observe.Source) *Exporter {
	if len(sources) == 0 {
		sources = []observe.Source{observe.Schedulers()}
	}
	return &Exporter{metricSet: metric.NewSet(sources), startTime: time.Now()}
}

// ExponentialHistograms switches e to exponential histograms of scale 3, and returns e.
// Their buckets are finer, but some backends do not accept them. Call it before Register
// and before a reader gets e.
func (e *Exporter) ExponentialHistograms() *Exporter {
	e.exponential = true
	return e
}

// Register creates the instruments with a meter of the provider. Unregister of the
// Registration ends the export. Register returns an error if the provider is nil or e was
// not made by New.
//
// Register only one Exporter with a provider, only once, and give it all Sources.
// Otherwise OpenTelemetry adds up counters that are exported twice.
//
// If reading a thing panics, otel.Handle gets the panic, and only the thing's
// read_failures are exported.
func (e *Exporter) Register(provider otelmetric.MeterProvider) (otelmetric.Registration, error) {
	switch {
	case e == nil || e.metricSet == nil:
		return nil, errZeroExporter
	case provider == nil:
		return nil, errors.New("otel: Register: the MeterProvider must not be nil")
	}
	meter := provider.Meter(scopeName)
	instruments := make(map[*metric.Metric]otelmetric.Float64Observable)
	var observables []otelmetric.Observable
	for _, thing := range e.metricSet.Things() {
		for i := range thing.Metrics {
			m := &thing.Metrics[i]
			if m.Kind == metric.Histogram {
				continue
			}
			instrument, err := newInstrument(meter, m)
			if err != nil {
				return nil, err
			}
			instruments[m] = instrument
			observables = append(observables, instrument)
		}
	}
	return meter.RegisterCallback(func(_ context.Context, o otelmetric.Observer) error {
		for _, r := range e.metricSet.Read() {
			if r.Err != nil {
				// Do not return the error: a periodic reader would then export nothing
				// at all.
				otel.Handle(fmt.Errorf("%s %q: %w", r.Thing.Name, r.Name, r.Err))
			}
			for i := range r.Thing.Metrics {
				m := &r.Thing.Metrics[i]
				if m.Kind == metric.Histogram {
					continue
				}
				r.Values(m, func(part string, value float64) {
					o.ObserveFloat64(instruments[m], value, otelmetric.WithAttributes(attributes(m, &r, part)...))
				})
			}
		}
		return nil
	}, observables...)
}

// attributes returns the attributes of a part of a metric: its labels and their values.
func attributes(m *metric.Metric, r *metric.Reading, part string) []attribute.KeyValue {
	if m.Label == "" {
		return []attribute.KeyValue{attribute.String(r.Thing.Label, r.Name)}
	}
	return []attribute.KeyValue{attribute.String(r.Thing.Label, r.Name), attribute.String(m.Label, metric.Text(part))}
}

// newInstrument creates the instrument for a metric.
func newInstrument(meter otelmetric.Meter, m *metric.Metric) (otelmetric.Float64Observable, error) {
	unit, help := otelmetric.WithUnit(m.Unit), otelmetric.WithDescription(m.Help)
	switch m.Kind {
	case metric.Counter:
		return meter.Float64ObservableCounter(m.Name, unit, help)
	case metric.UpDownCounter:
		return meter.Float64ObservableUpDownCounter(m.Name, unit, help)
	default:
		return meter.Float64ObservableGauge(m.Name, unit, help)
	}
}
