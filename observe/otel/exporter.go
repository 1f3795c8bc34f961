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

// An Exporter exports what its Sources have. Counts and gauges go through the
// instruments that Register makes, histograms through Produce.
type Exporter struct {
	set         *metric.Set
	begin       time.Time // when counting began, as far as readers are concerned
	exponential bool
}

// errZero is returned by an Exporter that New has not made.
var errZero = errors.New("otel: the zero Exporter: call otel.New")

// New makes an Exporter of the sources; without any, of observe.Schedulers. Its histograms
// have explicit bounds: see ExponentialHistograms. New panics if a source is the zero
// Source.
func New(sources ...observe.Source) *Exporter {
	if len(sources) == 0 {
		sources = []observe.Source{observe.Schedulers()}
	}
	return &Exporter{set: metric.NewSet(sources), begin: time.Now()}
}

// ExponentialHistograms makes the Exporter's histograms exponential ones, of scale 3.
// They are finer, and Prometheus has them as native histograms, but not every backend
// takes them. Call it before Register and before the Exporter is given to a reader. It
// returns e.
func (e *Exporter) ExponentialHistograms() *Exporter {
	e.exponential = true
	return e
}

// Register makes the instruments with a meter of the provider. The Registration takes
// them away again. It fails if the provider is nil, or New has not made e.
//
// Register one Exporter with a provider, once, and give it all Sources. If numbers come
// twice, OpenTelemetry adds up the counts, and takes one of the gauges. If a thing panics
// when it is read, otel.Handle gets the panic, and only its read_failures are exported.
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
				// If it were returned, a periodic reader would export nothing at all.
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

// attributes returns the attributes of a part of a metric.
func attributes(m *metric.Metric, r *metric.Reading, part string) []attribute.KeyValue {
	if m.Label == "" {
		return []attribute.KeyValue{attribute.String(r.Thing.Label, r.Name)}
	}
	return []attribute.KeyValue{attribute.String(r.Thing.Label, r.Name), attribute.String(m.Label, metric.Text(part))}
}

// newInstrument makes the instrument for a metric.
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
