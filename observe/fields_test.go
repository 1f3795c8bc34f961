package observe

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

// TestTables_ExportEachField changes each field of each Stats type, one at a time. It
// fails if a field changes no metric.
func TestTables_ExportEachField(t *testing.T) {
	each(t, schedulerThing, timer.Stats{}, func(st timer.Stats) any {
		st.Rejected += st.RejectedFull // RejectedFull is a part of Rejected
		return st
	})
	each(t, purgatoryThing, purgatory.Stats{}, func(st purgatory.Stats) any { return st })
	each(t, monitorThing, idle.Stats{}, func(st idle.Stats) any { return st })
	each(t, connsThing, idle.ConnsStats{}, func(st idle.ConnsStats) any { return st })
}

// each changes the numeric fields of a T, one at a time. It requires that each change
// changes a metric.
func each[T any](t *testing.T, thing *metric.Thing, zero T, sample func(T) any) {
	t.Helper()
	without := dump(thing, sample(zero))
	stats := zero
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			if !v.Type().Field(i).IsExported() {
				continue
			}
			switch {
			case f.CanInt():
				f.SetInt(7e9)
			case f.CanUint():
				f.SetUint(7e9)
			case f.Kind() == reflect.Slice:
				f.Set(reflect.ValueOf([]int{0, 3}))
			case f.Kind() == reflect.Struct:
				walk(f, path+name+".")
				continue
			default:
				continue // not a number
			}
			if dump(thing, sample(stats)) == without {
				t.Errorf("no metric of %s has %T.%s%s", thing.Name, zero, path, name)
			}
			f.SetZero()
		}
	}
	walk(reflect.ValueOf(&stats).Elem(), "")
}

// dump returns all numbers of a sample as text.
func dump(thing *metric.Thing, sample any) (text string) {
	r := metric.Reading{Thing: thing, Sample: sample}
	for i := range thing.Metrics {
		if m := &thing.Metrics[i]; m.Kind != metric.Histogram {
			r.Values(m, func(part string, value float64) { text += fmt.Sprintln(m.Name, part, value) })
		}
	}
	return text
}
