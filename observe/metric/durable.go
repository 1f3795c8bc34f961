package metric

import (
	"time"

	"github.com/tickless/tickless/timer"
)

// What a durable Client and Worker are read as. The core does not know package durable,
// but the tables are here, so that the tests of all exporters have them.

// A ClientSample is what is read of a durable Client.
type ClientSample struct {
	// Queue is what its store has said lately; nil if it does not answer.
	Queue    *Queue
	Commands []Command
}

// A Queue is what a store has. The first five add up to all its tasks.
type Queue struct {
	Pending, Due, Unknown, Running, Dead int64
	PausedShards                         int64
	Late                                 time.Duration
	Age                                  time.Duration // of these numbers

	Claimed, Done, Retried, Died, Crashed, Released, Refused, Cancelled int64
}

// A Command is what was counted of one kind of command of the store.
type Command struct {
	Name   string
	Errors int64
	Took   timer.Histogram
	// Outcomes are by what has become of tasks.
	Outcomes []Part
}

// A Part is a number with a name.
type Part struct {
	Name string
	N    int64
}

// A WorkerSample is what is read of a durable Worker.
type WorkerSample struct {
	Places, Taken                                 int
	Unknown, Claims, EmptyClaims, Errors, Wakeups int64
	// Handlers has one without a name for all of them, if they are not told apart.
	Handlers []Handler
}

// A Handler is what was counted of the tasks of one handler.
type Handler struct {
	Name    string
	Running int

	Claimed, Done, Retried, Died, Dropped, Overtaken, Released, Lost int64

	Lateness, Ran timer.Histogram
}

// Clients are durable Clients.
var Clients = clientTable()

func clientTable() *Thing {
	t := NewTable[*ClientSample]("durable.client", "client").Titled("Durable client")
	t.thing.Notes = "Why the store has not answered"
	queueOf(t)
	for _, op := range []struct{ command, name, help string }{
		{"schedule", "task.scheduled", "Tasks that this Client was asked to schedule, by the outcome"},
		{"reschedule", "task.rescheduled", "Tasks that this Client was asked to move to another time, by the outcome"},
		{"cancel", "task.cancelled", "Tasks that this Client was asked to cancel, by the outcome"},
	} {
		t.AddParts(Counter, op.name, "{task}", "outcome", op.help, func(s *ClientSample, yield func(string, float64)) {
			for _, c := range s.Commands {
				if c.Name == op.command {
					for _, p := range c.Outcomes {
						yield(p.Name, float64(p.N))
					}
				}
			}
		})
	}
	t.AddHistograms("command.duration", "command", "How long the store took for commands of this Client and of its Workers, whether they succeeded or not",
		func(s *ClientSample, yield func(string, timer.Histogram)) {
			for _, c := range s.Commands {
				yield(c.Name, c.Took)
			}
		})
	t.AddParts(Counter, "command.errors", "{error}", "command", "Commands of this Client and of its Workers that failed or were not answered",
		func(s *ClientSample, yield func(string, float64)) {
			for _, c := range s.Commands {
				yield(c.Name, float64(c.Errors))
			}
		})
	return t.Thing()
}

// queueOf adds what the store has.
func queueOf(t Table[*ClientSample]) {
	t.Add(Gauge, "queue.up", "{store}", "Whether the store has said lately what it has: 1 or 0; if 0 the other metrics of the queue are missing",
		func(s *ClientSample) float64 {
			if s.Queue == nil {
				return 0
			}
			return 1
		})
	// Every Client of the store has these, so that sums mean nothing.
	t.AddParts(Gauge, "queue.tasks", "{task}", "state",
		"Tasks in the store: to come (pending), due and not claimed (due), due and without a worker that has their handler or schedule (unknown), running, dead letters (dead)",
		func(s *ClientSample, yield func(string, float64)) {
			if q := s.Queue; q != nil {
				yield("pending", float64(q.Pending))
				yield("due", float64(q.Due))
				yield("unknown", float64(q.Unknown))
				yield("running", float64(q.Running))
				yield("dead", float64(q.Dead))
			}
		})
	number := func(kind Kind, name, unit, help string, read func(q *Queue) float64) {
		t.AddParts(kind, "queue."+name, unit, "", help, func(s *ClientSample, yield func(string, float64)) {
			if s.Queue != nil {
				yield("", read(s.Queue))
			}
		})
	}
	number(Gauge, "late", "s", "How long the task in the store has been due that waits longest",
		func(q *Queue) float64 { return q.Late.Seconds() })
	number(Gauge, "age", "s", "How old the numbers of the queue are",
		func(q *Queue) float64 { return q.Age.Seconds() })
	number(Gauge, "paused", "{shard}", "Shards of the store that are paused",
		func(q *Queue) float64 { return float64(q.PausedShards) })
	for _, c := range []struct {
		name, unit, help string
		read             func(q *Queue) int64
	}{
		{"claimed", "{attempt}", "Attempts started by any worker, since the store was made", func(q *Queue) int64 { return q.Claimed }},
		{"done", "{run}", "Runs that ended well, since the store was made", func(q *Queue) int64 { return q.Done }},
		{"retried", "{attempt}", "Attempts that failed and were followed by another, since the store was made", func(q *Queue) int64 { return q.Retried }},
		{"died", "{run}", "Runs that became dead letters, since the store was made", func(q *Queue) int64 { return q.Died }},
		{"crashed", "{lease}", "Leases that ran out, since the store was made", func(q *Queue) int64 { return q.Crashed }},
		{"released", "{attempt}", "Attempts handed back, since the store was made", func(q *Queue) int64 { return q.Released }},
		{"refused", "{report}", "Reports of workers that had lost their lease, since the store was made", func(q *Queue) int64 { return q.Refused }},
		{"cancelled", "{task}", "Tasks that Cancel removed, or asked to stop while they ran, since the store was made: those run to the end of their attempt", func(q *Queue) int64 { return q.Cancelled }},
	} {
		number(Counter, c.name, c.unit, c.help, func(q *Queue) float64 { return float64(c.read(q)) })
	}
}

// Workers are durable Workers.
var Workers = workerTable()

func workerTable() *Thing {
	t := NewTable[*WorkerSample]("durable.worker", "worker").Titled("Durable worker")
	t.thing.Notes = "Latest dead letters"
	t.Add(UpDownCounter, "places", "{handler}", "How many handlers may run at a time", func(s *WorkerSample) float64 { return float64(s.Places) })
	t.Add(UpDownCounter, "taken", "{handler}", "Places of handlers under way, and of tasks that are being claimed",
		func(s *WorkerSample) float64 { return float64(s.Taken) })
	parts := func(kind Kind, name, unit, help string, read func(h *Handler) float64) {
		t.AddParts(kind, name, unit, "handler", help, func(s *WorkerSample, yield func(string, float64)) {
			for i := range s.Handlers {
				yield(s.Handlers[i].Name, read(&s.Handlers[i]))
			}
		})
	}
	parts(UpDownCounter, "attempt.running", "{attempt}", "Handlers under way", func(h *Handler) float64 { return float64(h.Running) })
	for _, c := range []struct {
		name, help string
		read       func(h *Handler) int64
	}{
		{"claimed", "Attempts started", func(h *Handler) int64 { return h.Claimed }},
		{"done", "Attempts that ended well", func(h *Handler) int64 { return h.Done }},
		{"retried", "Attempts that failed and are followed by another", func(h *Handler) int64 { return h.Retried }},
		{"died", "Attempts that failed, after which the run is a dead letter", func(h *Handler) int64 { return h.Died }},
		{"dropped", "Runs that became dead letters without the handler, because they were missed, damaged or out of attempts", func(h *Handler) int64 { return h.Dropped }},
		{"overtaken", "Attempts that failed when their tasks had been cancelled, or scheduled again, so that no retry and no dead letter follows", func(h *Handler) int64 { return h.Overtaken }},
		{"released", "Attempts handed back", func(h *Handler) int64 { return h.Released }},
		{"lost", "Attempts whose lease was lost before they were reported", func(h *Handler) int64 { return h.Lost }},
	} {
		parts(Counter, "attempt."+c.name, "{attempt}", c.help, func(h *Handler) float64 { return float64(c.read(h)) })
	}
	histograms := func(name, help string, read func(h *Handler) timer.Histogram) {
		t.AddHistograms(name, "handler", help, func(s *WorkerSample, yield func(string, timer.Histogram)) {
			for i := range s.Handlers {
				yield(s.Handlers[i].Name, read(&s.Handlers[i]))
			}
		})
	}
	histograms("attempt.lateness", "How long after a run was due the attempt was claimed with which it began", func(h *Handler) timer.Histogram { return h.Lateness })
	histograms("attempt.duration", "How long handlers took", func(h *Handler) timer.Histogram { return h.Ran })
	number := func(name, unit, help string, read func(s *WorkerSample) int64) {
		t.Add(Counter, name, unit, help, func(s *WorkerSample) float64 { return float64(read(s)) })
	}
	number("task.unknown", "{task}", "Tasks claimed that the Worker does not know how to run, and left to others",
		func(s *WorkerSample) int64 { return s.Unknown })
	number("claims", "{claim}", "Claims sent", func(s *WorkerSample) int64 { return s.Claims })
	number("claims_empty", "{claim}", "Claims that got nothing", func(s *WorkerSample) int64 { return s.EmptyClaims })
	number("errors", "{error}", "Rounds of commands that failed or were not answered", func(s *WorkerSample) int64 { return s.Errors })
	number("wakeups", "{wakeup}", "Wake-ups for tasks that were scheduled before the next", func(s *WorkerSample) int64 { return s.Wakeups })
	return t.Thing()
}

// Add adds the numbers of another handler.
func (h *Handler) Add(o *Handler) {
	h.Running += o.Running
	h.Claimed += o.Claimed
	h.Done += o.Done
	h.Retried += o.Retried
	h.Died += o.Died
	h.Dropped += o.Dropped
	h.Overtaken += o.Overtaken
	h.Released += o.Released
	h.Lost += o.Lost
	h.Lateness.Merge(o.Lateness)
	h.Ran.Merge(o.Ran)
}
