package metrics

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
)

// Each number of durable.Stats is in what is exported.
func TestSample_HasEachField(t *testing.T) {
	without := *sample(&durable.Stats{}, 0)
	var walk func(st *durable.Stats, v reflect.Value)
	walk = func(st *durable.Stats, v reflect.Value) {
		for i := range v.NumField() {
			f := v.Field(i)
			if f.Kind() == reflect.Struct {
				walk(st, f)
				continue
			}
			f.SetInt(7)
			require.NotEqual(t, without, *sample(st, 0), v.Type().Field(i).Name)
			f.SetInt(0)
		}
	}
	st := new(durable.Stats)
	walk(st, reflect.ValueOf(st).Elem())
}
