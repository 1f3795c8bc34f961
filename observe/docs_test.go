package observe_test

import (
	"slices"
	"testing"

	"github.com/tickless/tickless/internal/observetest"
	"github.com/tickless/tickless/observe/metric"
)

// TestDocs_ListEveryMetric compares metrics.csv with all metrics: their order, names,
// kinds, units, labels and meanings.
func TestDocs_ListEveryMetric(t *testing.T) {
	var want []observetest.Row
	for _, thing := range metric.NewSet(observetest.Sources(t)).Things() {
		for i := range thing.Metrics {
			m := &thing.Metrics[i]
			labels := thing.Label
			if m.Label != "" {
				labels += ", " + m.Label
			}
			want = append(want, observetest.Row{
				OTel: m.Name, Prometheus: m.Prometheus(), Kind: m.Kind.String(), Unit: m.Unit, Labels: labels, Help: m.Help,
			})
		}
	}
	got := observetest.Core(observetest.Documented(t, ".."))
	for _, r := range want {
		if !slices.Contains(got, r) {
			t.Errorf("metrics.csv lacks the line\n%s,%s,%s,%s,%q,%q", r.OTel, r.Prometheus, r.Kind, r.Unit, r.Labels, r.Help)
		}
	}
	for _, r := range got {
		if !slices.Contains(want, r) {
			t.Errorf("metrics.csv lists %s, but no metric has all values of this line", r.OTel)
		}
	}
	if !t.Failed() && !slices.Equal(got, want) {
		t.Error("metrics.csv lists the metrics in another order than the code")
	}
}
