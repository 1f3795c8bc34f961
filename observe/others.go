package observe

import (
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/purgatory"
)

// add adds a metric whose number is an integer.
func add[T any, N int | uint64](t metric.Table[T], kind metric.Kind, name, unit, help string, read func(T) N) {
	t.Add(kind, name, unit, help, func(sample T) float64 { return float64(read(sample)) })
}

var keyedThing = func() *metric.Thing {
	t := metric.NewTable[int]("keyed", "keyed").Titled("Keyed")
	add(t, metric.UpDownCounter, "pending", "{key}", "Keys that are pending", func(n int) int { return n })
	return t.Thing()
}()

var purgatoryThing = func() *metric.Thing {
	t := metric.NewTable[purgatory.Stats]("purgatory", "purgatory").Titled("Purgatory")
	add(t, metric.UpDownCounter, "operation.waiting", "{operation}", "Operations that are waiting",
		func(s purgatory.Stats) int { return s.Delayed })
	add(t, metric.UpDownCounter, "watches", "{watch}", "Operations in the lists of all keys; an operation counts once for each of its keys",
		func(s purgatory.Stats) int { return s.Watched })
	add(t, metric.UpDownCounter, "keys", "{key}", "Keys that have operations waiting for them",
		func(s purgatory.Stats) int { return s.Keys })
	add(t, metric.Counter, "operation.entered", "{operation}", "Operations that had to wait, because they were not complete when they were added",
		func(s purgatory.Stats) uint64 { return s.Entered })
	add(t, metric.Counter, "operation.completed", "{operation}", "Operations that waited and completed before their timeout",
		func(s purgatory.Stats) uint64 { return s.Completed })
	add(t, metric.Counter, "operation.expired", "{operation}", "Operations that waited until their timeout",
		func(s purgatory.Stats) uint64 { return s.Expired })
	add(t, metric.Counter, "operation.cancelled", "{operation}", "Operations that CancelForKey cancelled",
		func(s purgatory.Stats) uint64 { return s.Cancelled })
	add(t, metric.Counter, "operation.handed_back", "{operation}", "Operations that were waiting when the Purgatory was closed",
		func(s purgatory.Stats) uint64 { return s.HandedBack })
	add(t, metric.Counter, "panics", "{panic}", "Panics of operations that the panic handler got",
		func(s purgatory.Stats) uint64 { return s.Panics })
	return t.Thing()
}()

var monitorThing = func() *metric.Thing {
	t := metric.NewTable[idle.Stats]("idle", "monitor").Titled("Monitor")
	add(t, metric.UpDownCounter, "entry.watching", "{entry}", "Entries that are watched",
		func(s idle.Stats) int { return s.Watching })
	add(t, metric.Counter, "entry.watched", "{entry}", "Entries that Watch made", func(s idle.Stats) uint64 { return s.Watched })
	add(t, metric.Counter, "entry.evicted", "{entry}", "Entries that were evicted", func(s idle.Stats) uint64 { return s.Evicted })
	add(t, metric.Counter, "entry.stopped", "{entry}", "Entries that Stop ended", func(s idle.Stats) uint64 { return s.Stopped })
	add(t, metric.Counter, "entry.handed_back", "{entry}", "Entries that were watched when the Monitor was closed",
		func(s idle.Stats) uint64 { return s.HandedBack })
	add(t, metric.Counter, "entry.rearmed", "{entry}", "Checks after which the entry stayed watched",
		func(s idle.Stats) uint64 { return s.Rearmed })
	add(t, metric.Counter, "entry.rejected", "{entry}", "Calls of Watch that returned an error",
		func(s idle.Stats) uint64 { return s.Rejected })
	return t.Thing()
}()

var connsThing = func() *metric.Thing {
	t := metric.NewTable[idle.ConnsStats]("conns", "conns").Titled("Connections")
	add(t, metric.UpDownCounter, "connection.open", "{connection}", "Connections that are open",
		func(s idle.ConnsStats) int { return s.Open })
	add(t, metric.Counter, "connection.wrapped", "{connection}", "Connections wrapped or accepted", func(s idle.ConnsStats) uint64 { return s.Wrapped })
	add(t, metric.Counter, "connection.evicted", "{connection}", "Connections closed for being idle", func(s idle.ConnsStats) uint64 { return s.Evicted })
	add(t, metric.Counter, "connection.closed", "{connection}", "Connections that their users closed", func(s idle.ConnsStats) uint64 { return s.Closed })
	add(t, metric.Counter, "eviction.refused", "{eviction}", "Evictions that the callback of WithOnIdle refused",
		func(s idle.ConnsStats) uint64 { return s.Refused })
	return t.Thing()
}()
