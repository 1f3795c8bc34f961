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

// An Exporter exports the metrics of its Sources: counters and gauges through the
// instruments that Register creates, histograms through Produce.
type Exporter struct {
	set         *metric.Set
	begin       time.Time // when counting began, as far as readers are concerned
	exponential bool
}

// errZero is the error of an Exporter that was not made by New.
var errZero = errors.New("otel: the zero Exporter: call otel.New")

// New returns an Exporter of the sources, or of observe.Schedulers if there are none.
// Its histograms have explicit bounds: see ExponentialHistograms. New panics if a
// source is the zero Source.
func New(sources ...observe.Source) *Exporter {
	if len(sources) == 0 {
		sources = []observe.Source{observe.Schedulers()}
	}
	return &Exporter{set: metric.NewSet(sources), begin: time.Now()}
}

// ExponentialHistograms switches the Exporter to exponential histograms of scale 3.
// They are finer, and become native histograms in Prometheus, but not every backend
// accepts them. Call it before Register and before a reader gets the Exporter. It
// returns e.
func (e *Exporter) ExponentialHistograms() *Exporter {
	e.exponential = true
	return e
}

// Register creates the instruments with a meter of the provider. The Registration
// removes them. Register returns an error if the provider is nil or e was not made by
// New.
//
// Register one Exporter with a provider, once, and give it all Sources. If two
// Exporters export the same metric, OpenTelemetry adds the counters and takes one of
// the gauges. If a source panics when it is read, Register passes the panic to
// otel.Handle and exports only the source's read_failures.
func (e *Exporter) Register(provider otelmetric.MeterProvider) (otelmetric.Registration, error) {
	switch {
	case e == nil || e.set == nil:
		return nil, errZero
	case provider == nil:
		return nil, errors.New("otel: Register: nil MeterProvider")
	}
	meter := provider.Meter(scopeName)
	instruments := make(map[*metric.Metric]otelmetric.Float64Observable)
	var all []otelmetric.Observable
	for _, thing := range e.set.Things() {
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
			all = append(all, instrument)
		}
	}
	return meter.RegisterCallback(func(_ context.Context, o otelmetric.Observer) error {
		for _, r := range e.set.Read() {
			if r.Err != nil {
				// If this callback returned the error, a periodic reader would export
				// nothing at all.
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
	}, all...)
}

// attributes returns the attributes of one part of a metric.
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
