package observe

import (
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/purgatory"
)

var keyedThing = func() *metric.Thing {
	t := metric.NewTable[int]("keyed", "keyed").Titled("Keyed")
	t.Add(metric.UpDownCounter, "pending", "{key}", "Keys that are pending", func(n int) float64 { return float64(n) })
	return t.Thing()
}()

var purgatoryThing = func() *metric.Thing {
	t := metric.NewTable[purgatory.Stats]("purgatory", "purgatory").Titled("Purgatory")
	addCounter := func(name, unit, help string, read func(purgatory.Stats) uint64) {
		t.Add(metric.Counter, name, unit, help, func(s purgatory.Stats) float64 { return float64(read(s)) })
	}
	addUpDownCounter := func(name, unit, help string, read func(purgatory.Stats) int) {
		t.Add(metric.UpDownCounter, name, unit, help, func(s purgatory.Stats) float64 { return float64(read(s)) })
	}
	addUpDownCounter("operation.waiting", "{operation}", "Operations that are waiting",
		func(s purgatory.Stats) int { return s.Delayed })
	addUpDownCounter("watches", "{watch}", "Operations in the lists of all keys; an operation counts once for each of its keys",
		func(s purgatory.Stats) int { return s.Watched })
	addUpDownCounter("keys", "{key}", "Keys that have operations waiting for them",
		func(s purgatory.Stats) int { return s.Keys })
	addCounter("operation.entered", "{operation}", "Operations that had to wait, because they were not complete when they were added",
		func(s purgatory.Stats) uint64 { return s.Entered })
	addCounter("operation.completed", "{operation}", "Operations that waited and completed before their timeout",
		func(s purgatory.Stats) uint64 { return s.Completed })
	addCounter("operation.expired", "{operation}", "Operations that waited until their timeout",
		func(s purgatory.Stats) uint64 { return s.Expired })
	addCounter("operation.cancelled", "{operation}", "Operations that CancelForKey cancelled",
		func(s purgatory.Stats) uint64 { return s.Cancelled })
	addCounter("operation.handed_back", "{operation}", "Operations that were waiting when the Purgatory was closed",
		func(s purgatory.Stats) uint64 { return s.HandedBack })
	addCounter("panics", "{panic}", "Panics of operations that the panic handler got",
		func(s purgatory.Stats) uint64 { return s.Panics })
	return t.Thing()
}()

var monitorThing = func() *metric.Thing {
	t := metric.NewTable[idle.Stats]("idle", "monitor").Titled("Monitor")
	addEntryCounter := func(name, help string, read func(idle.Stats) uint64) {
		t.Add(metric.Counter, "entry."+name, "{entry}", help, func(s idle.Stats) float64 { return float64(read(s)) })
	}
	t.Add(metric.UpDownCounter, "entry.watching", "{entry}", "Entries that are watched",
		func(s idle.Stats) float64 { return float64(s.Watching) })
	addEntryCounter("watched", "Entries that Watch made", func(s idle.Stats) uint64 { return s.Watched })
	addEntryCounter("evicted", "Entries that were evicted", func(s idle.Stats) uint64 { return s.Evicted })
	addEntryCounter("stopped", "Entries that Stop ended", func(s idle.Stats) uint64 { return s.Stopped })
	addEntryCounter("handed_back", "Entries that were watched when the Monitor was closed",
		func(s idle.Stats) uint64 { return s.HandedBack })
	addEntryCounter("rearmed", "Checks after which the entry stayed watched",
		func(s idle.Stats) uint64 { return s.Rearmed })
	addEntryCounter("rejected", "Calls of Watch that returned an error",
		func(s idle.Stats) uint64 { return s.Rejected })
	return t.Thing()
}()

var connsThing = func() *metric.Thing {
	t := metric.NewTable[idle.ConnsStats]("conns", "conns").Titled("Connections")
	addConnCounter := func(name, help string, read func(idle.ConnsStats) uint64) {
		t.Add(metric.Counter, "connection."+name, "{connection}", help,
			func(s idle.ConnsStats) float64 { return float64(read(s)) })
	}
	t.Add(metric.UpDownCounter, "connection.open", "{connection}", "Connections that are open",
		func(s idle.ConnsStats) float64 { return float64(s.Open) })
	addConnCounter("wrapped", "Connections wrapped or accepted", func(s idle.ConnsStats) uint64 { return s.Wrapped })
	addConnCounter("evicted", "Connections closed for being idle", func(s idle.ConnsStats) uint64 { return s.Evicted })
	addConnCounter("closed", "Connections that their users closed", func(s idle.ConnsStats) uint64 { return s.Closed })
	t.Add(metric.Counter, "eviction.refused", "{eviction}", "Evictions that the callback of WithOnIdle refused",
		func(s idle.ConnsStats) float64 { return float64(s.Refused) })
	return t.Thing()
}()
