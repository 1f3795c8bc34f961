package metrics

import (
	"encoding/csv"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/observe/metric"
)

// Each field of durable's statistics must change some metric.
func TestTables_ExportEachField(t *testing.T) {
	each(t, clientMetrics, func(st durable.Stats) any {
		st.Pending += st.Overdue // Pending includes Overdue
		st.Overdue += st.Unknown
		return clientSample{storeStats: &st}
	})
	each(t, clientMetrics, func(c durable.CommandStats) any {
		c.Command = "cancel"
		return clientSample{commands: []durable.CommandStats{c}}
	})
	// The metrics of handlers contain these fields in more detail.
	each(t, workerMetrics, func(st durable.WorkerStats) any { return workerSample{WorkerStats: st} },
		"Claimed", "Done", "Failed", "Died", "Released", "Overtaken", "Lost")
	each(t, workerMetrics, func(h durable.HandlerStats) any { return workerSample{handlers: []durable.HandlerStats{h}} })
}

// each sets one field of a T at a time, except those in leftOut, and checks that some
// metric changes.
func each[T any](t *testing.T, thing *metric.Thing, sample func(T) any, leftOut ...string) {
	t.Helper()
	var stats T
	dump := func() (text string) {
		r := metric.Reading{Thing: thing, Sample: sample(stats)}
		for i := range thing.Metrics {
			if m := &thing.Metrics[i]; m.Kind != metric.Histogram {
				r.Values(m, func(part string, value float64) { text += fmt.Sprintln(m.Name, part, value) })
			}
		}
		return text
	}
	without := dump()
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			switch {
			case slices.Contains(leftOut, name) || !v.Type().Field(i).IsExported():
			case f.CanInt():
				f.SetInt(7e9)
				require.NotEqual(t, without, dump(), "no metric of %s has %T.%s", thing.Name, stats, name)
				f.SetInt(0)
			case f.Kind() == reflect.Struct:
				walk(f)
			}
		}
	}
	walk(reflect.ValueOf(&stats).Elem())
}

// observe/metrics.csv lists every metric.
func TestTables_AreListed(t *testing.T) {
	f, err := os.Open("../../observe/metrics.csv")
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	got := slices.DeleteFunc(rows, func(r []string) bool { return !strings.HasPrefix(r[0], "tickless.durable.") })
	var want [][]string
	for _, thing := range []*metric.Thing{clientMetrics, workerMetrics} {
		for i := range thing.Metrics {
			m := &thing.Metrics[i]
			labels := thing.Label
			if m.Label != "" {
				labels += ", " + m.Label
			}
			want = append(want, []string{m.Name, m.Prometheus(), m.Kind.String(), m.Unit, labels, m.Help})
		}
	}
	require.Equal(t, want, got)
}
