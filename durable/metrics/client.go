package metrics

import (
	"fmt"
	"slices"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// DefaultMaxAge is the default of [WithMaxAge].
const DefaultMaxAge = 5 * time.Second

// A ClientOption changes how [Client] makes a Source.
type ClientOption interface{ apply(*statsReader) }

type clientOption func(*statsReader)

func (f clientOption) apply(r *statsReader) { f(r) }

// WithMaxAge sets how long the store's numbers are kept before a scrape reads the store
// again. The default is [DefaultMaxAge]. If d is zero, every scrape reads the store.
// WithMaxAge panics if d is negative.
func WithMaxAge(d time.Duration) ClientOption {
	if d < 0 {
		panic(fmt.Sprintf("metrics: WithMaxAge: the duration must not be negative, got %v", d))
	}
	return clientOption(func(r *statsReader) { r.maxAge = d })
}

// Client returns a Source for a Client: how many tasks the store has, and which commands
// the Client and its Workers have sent. Client panics if the name is empty, or if c or an
// option is nil.
//
// All Clients of a store export the same numbers of tasks: do not add them.
func Client(name string, c *durable.Client, opts ...ClientOption) observe.Source {
	if c == nil {
		panic("metrics: Client: nil Client")
	}
	r := &statsReader{readStats: c.Stats, maxAge: DefaultMaxAge}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("metrics: Client: option %d is nil", i+1))
		}
		o.apply(r)
	}
	return metric.One(clientMetrics, metric.Object{
		Name: name, ID: c,
		Read: func() any {
			s := clientSample{commands: commandStats(c)}
			s.storeStats, s.age = r.stats()
			return s
		},
		Notes: r.notes,
	})
}

// exportedOutcomes are the outcomes of each command that are exported even if their
// number is zero.
var exportedOutcomes = map[string][]durable.Outcome{
	"schedule":   {durable.Created, durable.Replaced, durable.Kept, durable.Following},
	"reschedule": {durable.Moved, durable.Following, durable.Absent},
	"cancel":     {durable.Removed, durable.Stopping, durable.Absent},
}

// exportedCommands are exported even if their number is zero, so that a rate includes the
// first command.
var exportedCommands = []string{"schedule", "reschedule", "cancel", "round"}

func commandStats(c *durable.Client) []durable.CommandStats {
	stats := c.CommandStats()
	for _, name := range exportedCommands {
		if !slices.ContainsFunc(stats, func(st durable.CommandStats) bool { return st.Command == name }) {
			stats = append(stats, durable.CommandStats{Command: name})
		}
	}
	return stats
}

// A clientSample is the numbers of a Client at one time.
type clientSample struct {
	storeStats *durable.Stats // nil if the store did not answer
	age        time.Duration  // of storeStats
	commands   []durable.CommandStats
}

var clientMetrics = newClientMetrics()

func newClientMetrics() *metric.Thing {
	t := metric.NewTable[clientSample]("durable.client", "client").Titled("Durable client").Noted("Why the store has not answered")
	addStoreMetrics(t)
	for _, op := range []struct{ command, name, help string }{
		{"schedule", "task.scheduled", "Tasks that this Client was asked to schedule, by the outcome"},
		{"reschedule", "task.rescheduled", "Tasks that this Client was asked to move to another time, by the outcome"},
		{"cancel", "task.cancelled", "Tasks that this Client was asked to cancel, by the outcome"},
	} {
		t.AddParts(metric.Counter, op.name, "{task}", "outcome", op.help, func(s clientSample, yield func(string, float64)) {
			for _, c := range s.commands {
				if c.Command == op.command {
					for _, o := range exportedOutcomes[c.Command] {
						yield(o.String(), float64(c.Outcomes[o]))
					}
				}
			}
		})
	}
	t.AddHistograms("command.duration", "command", "How long the store took for commands of this Client and of its Workers, whether they succeeded or not",
		func(s clientSample, yield func(string, timer.Histogram)) {
			for _, c := range s.commands {
				yield(c.Command, c.Took)
			}
		})
	t.AddParts(metric.Counter, "command.errors", "{error}", "command", "Commands of this Client and of its Workers that failed or were not answered",
		func(s clientSample, yield func(string, float64)) {
			for _, c := range s.commands {
				yield(c.Command, float64(c.Errors))
			}
		})
	return t.Thing()
}

func addStoreMetrics(t metric.Table[clientSample]) {
	t.Add(metric.Gauge, "queue.up", "{store}", "1 if the store's numbers could be read, otherwise 0: the other metrics of the queue are then missing",
		func(s clientSample) float64 {
			if s.storeStats == nil {
				return 0
			}
			return 1
		})
	// These are gauges: all Clients export the same store, so a sum over Clients would
	// mean nothing.
	t.AddParts(metric.Gauge, "queue.tasks", "{task}", "state",
		"Tasks in the store: not due yet (pending), due and not claimed (due), due without a worker that has their handler and schedule (unknown), running, dead letters (dead), finished runs that are kept (past), not found by claims until they are repaired (astray)",
		func(s clientSample, yield func(string, float64)) {
			st := s.storeStats
			if st == nil {
				return
			}
			// Shards are read one after the other. If a task moves in between, a
			// difference can be negative.
			yield("pending", float64(max(0, st.Pending-st.Overdue)))
			yield("due", float64(max(0, st.Overdue-st.Unknown)))
			yield("unknown", float64(st.Unknown))
			yield("running", float64(st.Running))
			yield("dead", float64(st.Dead))
			yield("past", float64(st.Past))
			yield("astray", float64(st.Astray))
		})
	addQueueMetric := func(kind metric.Kind, name, unit, help string, read func(s clientSample) float64) {
		t.AddParts(kind, "queue."+name, unit, "", help, func(s clientSample, yield func(string, float64)) {
			if s.storeStats != nil {
				yield("", read(s))
			}
		})
	}
	addQueueMetric(metric.Gauge, "late", "s", "How long the oldest due task has been waiting",
		func(s clientSample) float64 { return s.storeStats.Late.Seconds() })
	addQueueMetric(metric.Gauge, "age", "s", "How old the numbers of the queue are",
		func(s clientSample) float64 { return s.age.Seconds() })
	addQueueMetric(metric.Gauge, "paused", "{shard}", "Shards of the store that are paused",
		func(s clientSample) float64 { return float64(s.storeStats.Paused) })
	for _, c := range []struct {
		name, unit, help string
		read             func(st *durable.Stats) int64
	}{
		{"claimed", "{attempt}", "Attempts started by any worker, since the store was made", func(st *durable.Stats) int64 { return st.Claimed }},
		{"done", "{run}", "Runs that succeeded, since the store was made", func(st *durable.Stats) int64 { return st.Done }},
		{"retried", "{attempt}", "Failed attempts that are retried, since the store was made", func(st *durable.Stats) int64 { return st.Retried }},
		{"died", "{run}", "Runs that became dead letters, since the store was made", func(st *durable.Stats) int64 { return st.Died }},
		{"crashed", "{lease}", "Leases that expired, since the store was made", func(st *durable.Stats) int64 { return st.Crashed }},
		{"released", "{attempt}", "Attempts handed back, since the store was made", func(st *durable.Stats) int64 { return st.Released }},
		{"refused", "{report}", "Reports of workers that had lost their lease, since the store was made", func(st *durable.Stats) int64 { return st.Refused }},
		{"cancelled", "{task}", "Tasks that Cancel removed, or asked to stop while they ran, since the store was made", func(st *durable.Stats) int64 { return st.Cancelled }},
	} {
		addQueueMetric(metric.Counter, c.name, c.unit, c.help, func(s clientSample) float64 { return float64(c.read(s.storeStats)) })
	}
}
