// Package vars publishes the numbers of Schedulers, and of the packages built on them,
// as a variable of the standard library's package expvar.
//
// # Usage
//
//	vars.Publish("tickless", observe.Schedulers())
//
// GET /debug/vars then returns, among others, this variable:
//
//	"tickless": {
//	    "scheduler": {
//	        "default": {
//	            "timer.pending": 12,
//	            "timer.rejected": {"closed": 0, "full": 0},
//	            "timer.lateness": {"count": 3, "sum": 0.0021, "max": 0.0011, "p50": ..., "p90": ..., "p99": ..., "p999": ...},
//	            ...
//
// Here "scheduler" is a type of thing, and "default" is the name of a thing. The file
// observe/metrics.csv explains the other keys. There, "timer.pending" has the name
// tickless.scheduler.timer.pending. Durations are in seconds. Quantiles are at most 12.5
// percent above the true ones.
//
// If reading a thing panics, its object has only the keys "error" (the panic) and
// "read_failures".
//
// # Concurrency and complexity
//
// Any goroutine may read the variable. Reading it is O(shards) for each Scheduler,
// however many timers are pending.
package vars

import (
	"expvar"

	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
)

// Publish publishes the variable of [New] under a name. It panics if the name is in use.
func Publish(name string, sources ...observe.Source) {
	expvar.Publish(name, New(sources...))
}

// New returns a variable with the numbers of the sources. Without sources it uses
// [observe.Schedulers].
func New(sources ...observe.Source) expvar.Var {
	if len(sources) == 0 {
		sources = []observe.Source{observe.Schedulers()}
	}
	metricSet := metric.NewSet(sources)
	return expvar.Func(func() any {
		numbersByName := make(map[string]map[string]map[string]any) // by type and name of the thing
		for _, thing := range metricSet.Things() {
			numbersByName[thing.Name] = make(map[string]map[string]any)
		}
		for _, r := range metricSet.Read() {
			numbersByName[r.Thing.Name][r.Name] = r.Numbers()
		}
		return numbersByName
	})
}
