package otel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
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

	mu struct {
		sync.Mutex
		// registered are the Registrations that stand.
		registered map[otelmetric.MeterProvider]*registration
	}
}

// errZero is returned by an Exporter that New has not made.
var errZero = errors.New("otel: the zero Exporter: call otel.New")

// New makes an Exporter of the sources; without any, of observe.Schedulers. It panics if a
// source is the zero Source.
// Its histograms have explicit bounds: see ExponentialHistograms.
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
// them away again. It fails if the provider is nil, if New has not made e, and while a
// Registration of e with the provider stands.
//
// Give all Sources to one Exporter of a provider. Of things with the same name that two
// Exporters have, OpenTelemetry adds up the counts, and takes one of the gauges. What
// panics when it is read goes to otel.Handle, and has nothing but its read_failures.
func (e *Exporter) Register(provider otelmetric.MeterProvider) (otelmetric.Registration, error) {
	switch {
	case e == nil || e.set == nil:
		return nil, errZero
	case provider == nil:
		return nil, errors.New("otel: Register: nil MeterProvider")
	case !reflect.ValueOf(provider).Comparable():
		return e.register(provider) // it is no key: nobody can say whether it comes twice
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.registered[provider] != nil {
		return nil, errors.New("otel: Register: the Exporter is registered with this MeterProvider already")
	}
	inner, err := e.register(provider)
	if err != nil {
		return nil, err
	}
	r := &registration{inner, e, provider}
	if e.mu.registered == nil {
		e.mu.registered = make(map[otelmetric.MeterProvider]*registration)
	}
	e.mu.registered[provider] = r
	return r, nil
}

// A registration can be followed by another once it is unregistered.
type registration struct {
	otelmetric.Registration
	e        *Exporter
	provider otelmetric.MeterProvider
}

func (r *registration) Unregister() error {
	if err := r.Registration.Unregister(); err != nil {
		return err
	}
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if r.e.mu.registered[r.provider] == r { // else this is not the first call
		delete(r.e.mu.registered, r.provider)
	}
	return nil
}

// register makes the instruments, and has them observed.
func (e *Exporter) register(provider otelmetric.MeterProvider) (otelmetric.Registration, error) {
	meter := provider.Meter(scopeName)
	observers := make(map[*metric.Metric]observer)
	var instruments []otelmetric.Observable
	for _, thing := range e.set.Things() {
		for i := range thing.Metrics {
			m := &thing.Metrics[i]
			if m.Kind == metric.Histogram {
				continue
			}
			instrument, observer, err := newInstrument(meter, m)
			if err != nil {
				return nil, err
			}
			instruments = append(instruments, instrument)
			observers[m] = observer
		}
	}
	return meter.RegisterCallback(func(_ context.Context, o otelmetric.Observer) error {
		for _, r := range e.set.Read() {
			if r.Err != nil {
				// Returned it would keep a periodic reader from exporting anything.
				otel.Handle(fmt.Errorf("%s %q: %w", r.Thing.Name, r.Name, r.Err))
			}
			e.observe(o, &r, observers)
		}
		return nil
	}, instruments...)
}

// observe passes on the values of all instruments for one thing.
func (e *Exporter) observe(o otelmetric.Observer, r *metric.Reading, observers map[*metric.Metric]observer) {
	for i := range r.Thing.Metrics {
		m := &r.Thing.Metrics[i]
		if m.Kind == metric.Histogram {
			continue
		}
		r.Values(m, func(part string, value float64) {
			observers[m](o, value, attributes(m, r, part))
		})
	}
}

// attributes returns the attributes of a part of a metric.
func attributes(m *metric.Metric, r *metric.Reading, part string) []attribute.KeyValue {
	if m.Label == "" {
		return []attribute.KeyValue{attribute.String(r.Thing.Label, r.Name)}
	}
	return []attribute.KeyValue{attribute.String(r.Thing.Label, r.Name), attribute.String(m.Label, metric.Text(part))}
}

// An observer passes on a value of one instrument.
type observer func(o otelmetric.Observer, value float64, attributes []attribute.KeyValue)

// newInstrument makes the instrument for a metric: of floats for seconds, else of
// integers.
func newInstrument(meter otelmetric.Meter, m *metric.Metric) (otelmetric.Observable, observer, error) {
	unit, help := otelmetric.WithUnit(m.Unit), otelmetric.WithDescription(m.Help)
	if m.Seconds() {
		var instrument otelmetric.Float64Observable
		var err error
		switch m.Kind {
		case metric.Counter:
			instrument, err = meter.Float64ObservableCounter(m.Name, unit, help)
		case metric.UpDownCounter:
			instrument, err = meter.Float64ObservableUpDownCounter(m.Name, unit, help)
		default:
			instrument, err = meter.Float64ObservableGauge(m.Name, unit, help)
		}
		return instrument, func(o otelmetric.Observer, value float64, attributes []attribute.KeyValue) {
			o.ObserveFloat64(instrument, value, otelmetric.WithAttributes(attributes...))
		}, err
	}
	var instrument otelmetric.Int64Observable
	var err error
	switch m.Kind {
	case metric.Counter:
		instrument, err = meter.Int64ObservableCounter(m.Name, unit, help)
	case metric.UpDownCounter:
		instrument, err = meter.Int64ObservableUpDownCounter(m.Name, unit, help)
	default:
		instrument, err = meter.Int64ObservableGauge(m.Name, unit, help)
	}
	return instrument, func(o otelmetric.Observer, value float64, attributes []attribute.KeyValue) {
		o.ObserveInt64(instrument, int64(value), otelmetric.WithAttributes(attributes...))
	}, err
}
