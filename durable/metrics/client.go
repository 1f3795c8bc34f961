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
type ClientOption interface{ apply(*queue) }

type clientOption func(*queue)

func (f clientOption) apply(q *queue) { f(q) }

// WithMaxAge sets how old the numbers of the store may be before a scrape reads them
// again. The default is [DefaultMaxAge]. With zero, every scrape reads them. It panics
// if d is negative.
func WithMaxAge(d time.Duration) ClientOption {
	if d < 0 {
		panic(fmt.Sprintf("metrics: WithMaxAge: the duration must not be negative, got %v", d))
	}
	return clientOption(func(q *queue) { q.maxAge = d })
}

// Client returns a Source for a Client: the contents of its store, and the commands
// that the Client and its Workers have sent. It panics if the name is empty, or if c or
// an option is nil.
//
// All Clients of a store export the numbers of the same store: take the maximum over
// the processes, not the sum.
func Client(name string, c *durable.Client, opts ...ClientOption) observe.Source {
	if c == nil {
		panic("metrics: Client: nil Client")
	}
	q := &queue{stats: c.Stats, maxAge: DefaultMaxAge}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("metrics: Client: option %d is nil", i+1))
		}
		o.apply(q)
	}
	return metric.One(clients, metric.Object{
		Name: name, ID: c,
		Read: func() any {
			s := clientSample{commands: commands(c)}
			s.queue, s.age = q.read()
			return s
		},
		Notes: q.notes,
	})
}

// outcomes are the outcomes that are exported even if their number is zero.
var outcomes = map[string][]durable.Outcome{
	"schedule":   {durable.Created, durable.Replaced, durable.Kept, durable.Following},
	"reschedule": {durable.Moved, durable.Following, durable.Absent},
	"cancel":     {durable.Removed, durable.Stopping, durable.Absent},
}

// expected are the types of commands that are exported even if their number is zero. If
// a counter appeared only with its first burst, a rate would miss that burst.
var expected = []string{"schedule", "reschedule", "cancel", "round"}

func commands(c *durable.Client) []durable.CommandStats {
	all := c.CommandStats()
	for _, name := range expected {
		if !slices.ContainsFunc(all, func(st durable.CommandStats) bool { return st.Command == name }) {
			all = append(all, durable.CommandStats{Command: name})
		}
	}
	return all
}

// A clientSample is one reading of a Client.
type clientSample struct {
	queue    *durable.Stats // the latest answer of the store; nil if the store does not answer
	age      time.Duration  // of queue
	commands []durable.CommandStats
}

var clients = clientTable()

func clientTable() *metric.Thing {
	t := metric.NewTable[clientSample]("durable.client", "client").Titled("Durable client").Noted("Why the store has not answered")
	addQueue(t)
	for _, op := range []struct{ command, name, help string }{
		{"schedule", "task.scheduled", "Tasks that this Client was asked to schedule, by the outcome"},
		{"reschedule", "task.rescheduled", "Tasks that this Client was asked to move to another time, by the outcome"},
		{"cancel", "task.cancelled", "Tasks that this Client was asked to cancel, by the outcome"},
	} {
		t.AddParts(metric.Counter, op.name, "{task}", "outcome", op.help, func(s clientSample, yield func(string, float64)) {
			for _, c := range s.commands {
				if c.Command == op.command {
					for _, o := range outcomes[c.Command] {
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

// addQueue adds the metrics of the store's contents.
func addQueue(t metric.Table[clientSample]) {
	t.Add(metric.Gauge, "queue.up", "{store}", "Whether the store has said lately what it has: 1 or 0; if 0 the other metrics of the queue are missing",
		func(s clientSample) float64 {
			if s.queue == nil {
				return 0
			}
			return 1
		})
	// Every Client of the store exports the next metrics, so their sum over Clients
	// means nothing.
	t.AddParts(metric.Gauge, "queue.tasks", "{task}", "state",
		"Tasks in the store: to come (pending), due and not claimed (due), due and without a worker that has their handler or schedule (unknown), running, dead letters (dead), kept of runs that have ended (past), in no place until Repair (astray)",
		func(s clientSample, yield func(string, float64)) {
			q := s.queue
			if q == nil {
				return
			}
			// The shards are read one after the other, and tasks may move in between, so
			// that a difference can be negative.
			yield("pending", float64(max(0, q.Pending-q.Overdue)))
			yield("due", float64(max(0, q.Overdue-q.Unknown)))
			yield("unknown", float64(q.Unknown))
			yield("running", float64(q.Running))
			yield("dead", float64(q.Dead))
			yield("past", float64(q.Past))
			yield("astray", float64(q.Astray))
		})
	number := func(kind metric.Kind, name, unit, help string, read func(s clientSample) float64) {
		t.AddParts(kind, "queue."+name, unit, "", help, func(s clientSample, yield func(string, float64)) {
			if s.queue != nil {
				yield("", read(s))
			}
		})
	}
	number(metric.Gauge, "late", "s", "How long the task in the store has been due that waits longest",
		func(s clientSample) float64 { return s.queue.Late.Seconds() })
	number(metric.Gauge, "age", "s", "How old the numbers of the queue are",
		func(s clientSample) float64 { return s.age.Seconds() })
	number(metric.Gauge, "paused", "{shard}", "Shards of the store that are paused",
		func(s clientSample) float64 { return float64(s.queue.Paused) })
	for _, c := range []struct {
		name, unit, help string
		read             func(q *durable.Stats) int64
	}{
		{"claimed", "{attempt}", "Attempts started by any worker, since the store was made", func(q *durable.Stats) int64 { return q.Claimed }},
		{"done", "{run}", "Runs that ended well, since the store was made", func(q *durable.Stats) int64 { return q.Done }},
		{"retried", "{attempt}", "Attempts that failed and were followed by another, since the store was made", func(q *durable.Stats) int64 { return q.Retried }},
		{"died", "{run}", "Runs that became dead letters, since the store was made", func(q *durable.Stats) int64 { return q.Died }},
		{"crashed", "{lease}", "Leases that ran out, since the store was made", func(q *durable.Stats) int64 { return q.Crashed }},
		{"released", "{attempt}", "Attempts handed back, since the store was made", func(q *durable.Stats) int64 { return q.Released }},
		{"refused", "{report}", "Reports of workers that had lost their lease, since the store was made", func(q *durable.Stats) int64 { return q.Refused }},
		{"cancelled", "{task}", "Tasks that Cancel removed, or asked to stop while they ran, since the store was made: those run to the end of their attempt", func(q *durable.Stats) int64 { return q.Cancelled }},
	} {
		number(metric.Counter, c.name, c.unit, c.help, func(s clientSample) float64 { return float64(c.read(s.queue)) })
	}
}
