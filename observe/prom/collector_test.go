package prom_test

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/internal/observetest"
	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/prom"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gather returns the exported metrics of the sources, by name.
func gather(t *testing.T, sources ...observe.Source) map[string]*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(prom.New(sources...))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*dto.MetricFamily)
	for _, f := range families {
		all[f.GetName()] = f
	}
	return all
}

// TestCollector_HasWhatIsDocumented compares the names, types, labels and help texts
// with observe/metrics.csv.
func TestCollector_HasWhatIsDocumented(t *testing.T) {
	families := gather(t, observetest.Sources(t)...)
	kinds := map[string]dto.MetricType{
		"counter":         dto.MetricType_COUNTER,
		"up-down counter": dto.MetricType_GAUGE,
		"gauge":           dto.MetricType_GAUGE,
		"histogram":       dto.MetricType_HISTOGRAM,
	}
	for _, r := range observetest.Core(observetest.Documented(t, "../..")) {
		f := families[r.Prometheus]
		if f == nil {
			t.Errorf("%s is missing", r.Prometheus)
			continue
		}
		delete(families, r.Prometheus)
		if f.GetType() != kinds[r.Kind] {
			t.Errorf("%s is a %v, documented as %s", r.Prometheus, f.GetType(), r.Kind)
		}
		if f.GetHelp() != r.Help {
			t.Errorf("%s has the help %q, documented as %q", r.Prometheus, f.GetHelp(), r.Help)
		}
		want := strings.Split(r.Labels, ", ")
		slices.Sort(want)
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
			if !slices.Equal(labels, want) {
				t.Errorf("%s has the labels %v, want %v", r.Prometheus, labels, want)
			}
		}
	}
	for name := range families {
		t.Errorf("%s is not documented", name)
	}
}

// TestCollector_Values checks the values for observetest's Scheduler.
func TestCollector_Values(t *testing.T) {
	want := `
		# HELP tickless_scheduler_timer_pending Timers that have neither fired nor been stopped
		# TYPE tickless_scheduler_timer_pending gauge
		tickless_scheduler_timer_pending{scheduler="jobs"} 4
		# HELP tickless_scheduler_timer_rejected_total Timers not started, because too many were pending (full) or the Scheduler was closed (closed)
		# TYPE tickless_scheduler_timer_rejected_total counter
		tickless_scheduler_timer_rejected_total{reason="closed",scheduler="jobs"} 0
		tickless_scheduler_timer_rejected_total{reason="full",scheduler="jobs"} 1
		# HELP tickless_scheduler_callback_panicked_total Callbacks that panicked
		# TYPE tickless_scheduler_callback_panicked_total counter
		tickless_scheduler_callback_panicked_total{scheduler="jobs"} 1
		# HELP tickless_keyed_pending Keys that are pending
		# TYPE tickless_keyed_pending gauge
		tickless_keyed_pending{keyed="sessions"} 1
		# HELP tickless_purgatory_watches Operations in the lists of all keys; an operation counts once for each of its keys
		# TYPE tickless_purgatory_watches gauge
		tickless_purgatory_watches{purgatory="produce"} 2
		# HELP tickless_idle_entry_watched_total Entries that Watch made
		# TYPE tickless_idle_entry_watched_total counter
		tickless_idle_entry_watched_total{monitor="peers"} 2
	`
	err := testutil.CollectAndCompare(prom.New(observetest.Sources(t)...), strings.NewReader(want),
		"tickless_scheduler_timer_pending", "tickless_scheduler_timer_rejected_total", "tickless_scheduler_callback_panicked_total",
		"tickless_keyed_pending", "tickless_purgatory_watches", "tickless_idle_entry_watched_total")
	if err != nil {
		t.Error(err)
	}
}

// TestCollector_NamesFollowTheRules runs Prometheus's own checks of names and help
// texts.
func TestCollector_NamesFollowTheRules(t *testing.T) {
	problems, err := testutil.CollectAndLint(prom.New(observetest.Sources(t)...))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestCollector_HistogramIsNativeAndClassic checks the lateness histogram of three
// timers that were 3 ms late.
func TestCollector_HistogramIsNativeAndClassic(t *testing.T) {
	h := gather(t, observetest.Sources(t)...)["tickless_scheduler_timer_lateness_seconds"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 3 || math.Abs(h.GetSampleSum()-0.009) > 1e-12 {
		t.Errorf("the histogram has %d durations with the sum %g, want 3 with 0.009", h.GetSampleCount(), h.GetSampleSum())
	}
	for _, b := range h.GetBucket() {
		want := uint64(0)
		if b.GetUpperBound() >= 0.003 {
			want = 3
		}
		if b.GetCumulativeCount() != want {
			t.Errorf("%d durations are up to %g s, want %d", b.GetCumulativeCount(), b.GetUpperBound(), want)
		}
	}
	if len(h.GetBucket()) == 0 {
		t.Error("there is no classic histogram")
	}
	if h.CreatedTimestamp != nil {
		t.Errorf("the created timestamp is %v, want none", h.CreatedTimestamp)
	}
	spans, deltas := h.GetPositiveSpan(), h.GetPositiveDelta()
	if len(spans) != 1 || spans[0].GetLength() != 1 || !slices.Equal(deltas, []int64{3}) || h.GetSchema() != 3 {
		t.Fatalf("the native histogram is %v", h)
	}
	// timer.Histogram rounds 3 ms up to 3.146 ms. This is in the native bucket from
	// 2^(-67/8) s to 2^(-66/8) s: 3.01 to 3.29 ms.
	if spans[0].GetOffset() != -66 {
		t.Errorf("the native bucket is %d, want -66", spans[0].GetOffset())
	}
}

// TestCollector_ServedFormatsParse serves every format that Prometheus may request and
// parses the result with Prometheus's parser.
func TestCollector_ServedFormatsParse(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	sources := observetest.Sources(t)
	registry.MustRegister(prom.New(sources...))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	documented := observetest.Core(observetest.Documented(t, "../.."))
	for _, format := range []expfmt.Format{
		expfmt.NewFormat(expfmt.TypeTextPlain),
		expfmt.NewFormat(expfmt.TypeProtoDelim),
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept", string(format))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", format, w.Code, w.Body)
		}
		decoder := expfmt.NewDecoder(bytes.NewReader(w.Body.Bytes()), expfmt.ResponseFormat(w.Header()))
		n, native := 0, false
		for {
			var f dto.MetricFamily
			if decoder.Decode(&f) != nil {
				break
			}
			n++
			if !model.LegacyValidation.IsValidMetricName(f.GetName()) {
				t.Errorf("%s is not a valid name of a metric", f.GetName())
			}
			for _, m := range f.GetMetric() {
				native = native || m.GetHistogram().GetPositiveSpan() != nil
			}
		}
		if n != len(documented) {
			t.Errorf("%s has %d metrics, want %d", format, n, len(documented))
		}
		if native != (format.FormatType() == expfmt.TypeProtoDelim) {
			t.Errorf("%s: has native histograms: %v", format, native)
		}
	}
}

func Example() {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := timer.New(timer.WithName("jobs"), timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	s.AfterFunc(time.Minute, func() {})

	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.New(observe.Schedulers()))

	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "tickless_scheduler_timer_pending") {
			fmt.Print(line)
		}
	}
	// Output: tickless_scheduler_timer_pending{scheduler="jobs"} 1
}

// If reading a source panics, neither the process nor the scrape ends.
func TestCollector_AThingThatPanics(t *testing.T) {
	sources := append(observetest.Sources(t), observe.Purgatory("not made", new(purgatory.Purgatory[string])), observe.Scheduler("not made", new(timer.Scheduler)))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(prom.New(sources...))
	for range 2 {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `tickless_scheduler_timer_pending{scheduler="jobs"} 4`) {
			t.Fatalf("got %d: %s", w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), `tickless_purgatory_operation_waiting{purgatory="not made"}`) {
			t.Error("numbers are exported although reading panicked")
		}
	}
	want := `
# HELP tickless_purgatory_read_failures_total Reads that panicked; the other numbers are then missing
# TYPE tickless_purgatory_read_failures_total counter
tickless_purgatory_read_failures_total{purgatory="not made"} 3
tickless_purgatory_read_failures_total{purgatory="produce"} 0
# HELP tickless_scheduler_read_failures_total Reads that panicked; the other numbers are then missing
# TYPE tickless_scheduler_read_failures_total counter
tickless_scheduler_read_failures_total{scheduler="jobs"} 0
tickless_scheduler_read_failures_total{scheduler="not made"} 3
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "tickless_purgatory_read_failures_total", "tickless_scheduler_read_failures_total"); err != nil {
		t.Error(err)
	}
}

func TestCollector_TheZeroOne(t *testing.T) {
	for _, c := range []*prom.Collector{nil, {}} {
		registry := prometheus.NewRegistry()
		if err := registry.Register(c); err == nil || !strings.Contains(err.Error(), "prom: the zero Collector: call prom.New") {
			t.Errorf("Register returned %v", err)
		}
		if _, err := testutil.CollectAndLint(c); err == nil {
			t.Error("the zero Collector could be collected")
		}
		out := make(chan prometheus.Metric, 1)
		c.Collect(out)
		if err := (<-out).Write(new(dto.Metric)); err == nil {
			t.Error("the zero Collector has a metric")
		}
	}
}

// TestCollector_TwoOfAKind checks what Collector's documentation says about two
// Collectors.
func TestCollector_TwoOfAKind(t *testing.T) {
	s, other := timer.New(), timer.New()
	defer s.Close()
	defer other.Close()
	sessions := observe.Keyed("k", keyed.New(s, func(string, int) {}))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(prom.New(observe.Scheduler("one", s)))
	if err := registry.Register(prom.New(observe.Scheduler("two", other))); err == nil ||
		err.Error() != "duplicate metrics collector registration attempted" {
		t.Errorf("Register returned %v", err)
	}
	if err := registry.Register(prom.New(observe.Scheduler("two", other), sessions)); err == nil ||
		!strings.Contains(err.Error(), "already exists with the same fully-qualified name and const label values") {
		t.Errorf("Register returned %v", err)
	}
	if err := registry.Register(prom.New(sessions)); err != nil {
		t.Errorf("Register of another type of source returned %v", err)
	}
	registry = prometheus.NewPedanticRegistry()
	for part, s := range map[string]*timer.Scheduler{"a": s, "b": other} {
		prometheus.WrapRegistererWith(prometheus.Labels{"part": part}, registry).MustRegister(prom.New(observe.Scheduler("jobs", s)))
	}
	if n, err := testutil.GatherAndCount(registry, "tickless_scheduler_timer_pending"); n != 2 || err != nil {
		t.Errorf("got %d Schedulers with different labels, want 2: %v", n, err)
	}
}

// A Scheduler that several Sources contain is exported once.
func TestCollector_TheSameThingTwice(t *testing.T) {
	s := timer.New(timer.WithName("its own"))
	defer s.Close()
	families := gather(t, observe.Schedulers(), observe.Scheduler("first", s), observe.Scheduler("second", s))
	var names []string
	for _, m := range families["tickless_scheduler_timer_pending"].GetMetric() {
		names = append(names, m.GetLabel()[0].GetValue())
	}
	if !slices.Equal(names, []string{"first"}) {
		t.Errorf("the Scheduler is exported as %v", names)
	}
}
