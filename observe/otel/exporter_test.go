package otel_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/otlptranslator"
	global "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/internal/observetest"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/otel"
	"github.com/tickless/tickless/observe/prom"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collect returns the metrics that a reader gets from an Exporter.
func collect(t *testing.T, e *otel.Exporter) []metricdata.Metrics {
	t.Helper()
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(e))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer provider.Shutdown(context.Background())
	if _, err := e.Register(provider); err != nil {
		t.Fatal(err)
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	var all []metricdata.Metrics
	for _, scope := range collected.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	return all
}

// kind returns the type of a metric, as metrics.csv names it, and the attributes of its
// points.
func kind(t *testing.T, data metricdata.Aggregation) (kind string, attributes []attribute.Set) {
	t.Helper()
	switch data := data.(type) {
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			attributes = append(attributes, p.Attributes)
		}
		if data.IsMonotonic {
			return "counter", attributes
		}
		return "up-down counter", attributes
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			attributes = append(attributes, p.Attributes)
		}
		return "gauge", attributes
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			attributes = append(attributes, p.Attributes)
		}
		return "histogram", attributes
	case metricdata.ExponentialHistogram[float64]:
		for _, p := range data.DataPoints {
			attributes = append(attributes, p.Attributes)
		}
		return "histogram", attributes
	}
	t.Fatalf("unexpected %T", data)
	return "", nil
}

// TestExporter_HasWhatIsDocumented compares the names, types, units, attributes and
// descriptions with observe/metrics.csv.
func TestExporter_HasWhatIsDocumented(t *testing.T) {
	sources := observetest.Sources(t)
	for _, e := range []*otel.Exporter{otel.New(sources...), otel.New(sources...).ExponentialHistograms()} {
		found := make(map[string]metricdata.Metrics)
		for _, m := range collect(t, e) {
			if _, twice := found[m.Name]; twice {
				t.Errorf("%s is exported twice", m.Name)
			}
			found[m.Name] = m
		}
		for _, r := range observetest.Core(observetest.Documented(t, "../..")) {
			m, ok := found[r.OTel]
			if !ok {
				t.Errorf("%s is missing", r.OTel)
				continue
			}
			delete(found, r.OTel)
			if m.Unit != r.Unit || m.Description != r.Help {
				t.Errorf("%s has the unit %q and the description %q, documented as %q and %q", r.OTel, m.Unit, m.Description, r.Unit, r.Help)
			}
			kind, attributes := kind(t, m.Data)
			if kind != r.Kind {
				t.Errorf("%s is a %s, documented as %s", r.OTel, kind, r.Kind)
			}
			for _, set := range attributes {
				var keys []string
				for _, a := range set.ToSlice() {
					keys = append(keys, string(a.Key))
				}
				want := strings.Split(r.Labels, ", ")
				slices.Sort(want)
				if !slices.Equal(keys, want) {
					t.Errorf("%s has the attributes %v, want %v", r.OTel, keys, want)
				}
			}
		}
		for name := range found {
			t.Errorf("%s is not documented", name)
		}
	}
}

// TestExporter_PrometheusNamesAreTheOfficialOnes compares each Prometheus name with what
// OpenTelemetry's own translator returns.
func TestExporter_PrometheusNamesAreTheOfficialOnes(t *testing.T) {
	types := map[string]otlptranslator.MetricType{
		"counter":         otlptranslator.MetricTypeMonotonicCounter,
		"up-down counter": otlptranslator.MetricTypeNonMonotonicCounter,
		"gauge":           otlptranslator.MetricTypeGauge,
		"histogram":       otlptranslator.MetricTypeHistogram,
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	for _, r := range observetest.Core(observetest.Documented(t, "../..")) {
		name, err := namer.Build(otlptranslator.Metric{Name: r.OTel, Unit: r.Unit, Type: types[r.Kind]})
		if err != nil || name != r.Prometheus {
			t.Errorf("%s becomes %s (%v), documented as %s", r.OTel, name, err, r.Prometheus)
		}
	}
}

// TestExporter_ThroughPrometheusIsPackageProm exports sources in two ways: with package
// prom, and with this package and OpenTelemetry's exporter for Prometheus. Both must
// export the same.
func TestExporter_ThroughPrometheusIsPackageProm(t *testing.T) {
	sources := append(observetest.Sources(t), observetest.Foreign())
	direct := prometheus.NewPedanticRegistry()
	direct.MustRegister(prom.New(sources...))
	for _, exponential := range []bool{false, true} {
		e := otel.New(sources...)
		if exponential {
			e.ExponentialHistograms()
		}
		translated := prometheus.NewRegistry()
		reader, err := otelprom.New(otelprom.WithRegisterer(translated), otelprom.WithProducer(e),
			otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
		if err != nil {
			t.Fatal(err)
		}
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		if _, err := e.Register(provider); err != nil {
			t.Fatal(err)
		}
		want, got := gather(t, direct, exponential), gather(t, translated, exponential)
		for series, value := range want {
			if got[series] != value {
				t.Errorf("exponential %v: %s is\n%s, from package prom\n%s", exponential, series, got[series], value)
			}
		}
		for series := range got {
			if want[series] == "" {
				t.Errorf("exponential %v: package prom does not have %s", exponential, series)
			}
		}
		if len(want) < 40 {
			t.Errorf("there are only %d series", len(want))
		}
		provider.Shutdown(context.Background())
	}
}

// gather returns all series with their types, help texts and values.
func gather(t *testing.T, g prometheus.Gatherer, native bool) map[string]string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			series := fmt.Sprintf("%v %s{%s}: %s", f.GetType(), f.GetName(), strings.Join(labels, ","), f.GetHelp())
			all[series] = value(m, native)
		}
	}
	return all
}

func value(m *dto.Metric, native bool) string {
	h := m.GetHistogram()
	switch {
	case h == nil:
		return fmt.Sprint(m.GetCounter().GetValue() + m.GetGauge().GetValue())
	case native:
		return fmt.Sprintf("%d %g schema %d zero %d up to %g: %v", h.GetSampleCount(), h.GetSampleSum(),
			h.GetSchema(), h.GetZeroCount(), h.GetZeroThreshold(), buckets(h))
	}
	text := fmt.Sprint(h.GetSampleCount(), h.GetSampleSum())
	for _, b := range h.GetBucket() {
		if !math.IsInf(b.GetUpperBound(), 1) {
			text += fmt.Sprintf(" %g:%d", b.GetUpperBound(), b.GetCumulativeCount())
		}
	}
	return text
}

// buckets returns the counts of a native histogram's buckets that are not empty.
func buckets(h *dto.Histogram) map[int]int64 {
	counts := make(map[int]int64)
	i, count, deltas := 0, int64(0), h.GetPositiveDelta()
	for _, span := range h.GetPositiveSpan() {
		i += int(span.GetOffset())
		for range span.GetLength() {
			count += deltas[0]
			deltas = deltas[1:]
			if count != 0 {
				counts[i] = count
			}
			i++
		}
	}
	return counts
}

func TestExporter_ProduceHonoursContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := otel.New(observetest.Sources(t)...).Produce(ctx); err != context.Canceled {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestExporter_NothingToExport(t *testing.T) {
	s := timer.New(timer.WithClock(timertest.NewClock(time.Unix(0, 0)))) // has no name
	defer s.Close()
	if scopes, err := otel.New().Produce(t.Context()); err != nil || scopes != nil {
		t.Errorf("got %v, %v, want nothing", scopes, err)
	}
}

// After Unregister nothing is exported.
func TestExporter_Unregister(t *testing.T) {
	e := otel.New(observetest.Sources(t)...)
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer provider.Shutdown(context.Background())
	registration, err := e.Register(provider)
	if err != nil {
		t.Fatal(err)
	}
	if err := registration.Unregister(); err != nil {
		t.Fatal(err)
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	if len(collected.ScopeMetrics) != 0 {
		t.Errorf("got %v, want nothing", collected.ScopeMetrics)
	}
}

func Example() {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := timer.New(timer.WithName("jobs"), timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	s.AfterFunc(time.Minute, func() {})

	exporter := otel.New(observe.Schedulers())
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(exporter))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	if _, err := exporter.Register(provider); err != nil {
		fmt.Println(err)
	}
	defer provider.Shutdown(context.Background())

	var collected metricdata.ResourceMetrics
	reader.Collect(context.Background(), &collected)
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[float64]); ok && m.Name == "tickless.scheduler.timer.pending" {
				name, _ := sum.DataPoints[0].Attributes.Value("scheduler")
				fmt.Println(m.Name, m.Unit, name.AsString(), sum.DataPoints[0].Value)
			}
		}
	}
	// Output: tickless.scheduler.timer.pending {timer} jobs 1
}

// If reading a source panics, neither the process nor the collection ends.
func TestExporter_AThingThatPanics(t *testing.T) {
	var mu sync.Mutex
	var handled []string
	before := global.GetErrorHandler()
	defer global.SetErrorHandler(before)
	global.SetErrorHandler(global.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		handled = append(handled, err.Error())
	}))
	sources := append(observetest.Sources(t), observe.Purgatory("not made", new(purgatory.Purgatory[string])), observe.Scheduler("not made", new(timer.Scheduler)))
	e := otel.New(sources...)
	for n := 1; n <= 3; n++ {
		var failures, pending []string
		for _, m := range collect(t, e) {
			switch m.Name {
			case "tickless.scheduler.read_failures", "tickless.purgatory.read_failures":
				for _, p := range m.Data.(metricdata.Sum[float64]).DataPoints {
					failures = append(failures, fmt.Sprint(p.Attributes.Encoded(attribute.DefaultEncoder()), " ", p.Value))
				}
			case "tickless.scheduler.timer.pending":
				_, sets := kind(t, m.Data)
				for _, s := range sets {
					pending = append(pending, s.Encoded(attribute.DefaultEncoder()))
				}
			}
		}
		slices.Sort(failures)
		want := []string{fmt.Sprint("purgatory=not made ", n), "purgatory=produce 0", "scheduler=jobs 0", fmt.Sprint("scheduler=not made ", n)}
		if !slices.Equal(failures, want) || !slices.Equal(pending, []string{"scheduler=jobs"}) {
			t.Errorf("collection %d has %q and %q", n, failures, pending)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(handled) != 6 || !strings.HasPrefix(handled[0], `purgatory "not made": observe: panic: `) && !strings.HasPrefix(handled[0], `scheduler "not made": observe: panic: `) {
		t.Errorf("the error handler got %q", handled)
	}
}

func TestExporter_RefusesNil(t *testing.T) {
	for _, e := range []*otel.Exporter{nil, {}} {
		if _, err := e.Register(sdkmetric.NewMeterProvider()); err == nil || err.Error() != "otel: the zero Exporter: call otel.New" {
			t.Errorf("Register returned %v", err)
		}
		if _, err := e.Produce(t.Context()); err == nil || err.Error() != "otel: the zero Exporter: call otel.New" {
			t.Errorf("Produce returned %v", err)
		}
	}
	if _, err := otel.New().Register(nil); err == nil || err.Error() != "otel: Register: the MeterProvider must not be nil" {
		t.Errorf("Register returned %v", err)
	}
}
