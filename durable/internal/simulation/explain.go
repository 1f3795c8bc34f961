package simulation

import (
	"fmt"
	"slices"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
)

// checkExplanations compares Client.Explain with what the model says of some tasks of a shard.
func (s *server) checkExplanations(j *storetest.Judge, shard int, now store.Time) {
	const most = 5
	client := durable.New(s.st)
	stats, workers := must(s.st.Stats(background, shard)), must(s.st.Workers(background, shard))
	entries := j.Entries()
	mayBeLost := false // whether Explain may take a worker for lost
	for other, judge := range s.judges {
		// Until a shard's first command after a step of the clock, its leases seem to have ended.
		mayBeLost = mayBeLost || s.offsets[other] != s.clock.offsetNow() || hasEndedLease(judge.Entries(), now)
	}
	for i := range min(most, len(entries)) {
		e := &entries[(s.commands+i*7)%len(entries)]
		if e.State > store.Running {
			continue
		}
		x := must(client.Explain(background, e.ID))
		if wrong := explanationError(e, &x, now, &stats, workers, entries, mayBeLost); wrong != "" {
			panic(violation(fmt.Sprintf("%s: the explanation of %+v at %d is %+v", wrong, *e, now, x.Reasons)))
		}
	}
}

// explanationError returns what is wrong with an explanation, or an empty string.
func explanationError(e *store.Entry, x *durable.Explanation, now store.Time, stats *store.Stats, workers []store.Worker, entries []store.Entry, mayBeLost bool) string {
	find := func(kinds ...durable.ReasonKind) *durable.Reason {
		i := slices.IndexFunc(x.Reasons, func(r durable.Reason) bool { return slices.Contains(kinds, r.Kind) })
		if i < 0 {
			return nil
		}
		return &x.Reasons[i]
	}
	if e.State == store.Running {
		if r := find(durable.ReasonRunning, durable.ReasonLeaseLost); len(x.Reasons) != 1 || r == nil || !r.Until.Equal(e.At.Std()) ||
			r.Kind == durable.ReasonRunning && e.At <= now {
			return "a running task"
		}
		return ""
	}
	_, handlerPaused := stats.PausedHandlers[e.Handler]
	taskPaused := e.Waits() || e.At == store.Farthest && e.Repeats()
	waits := find(durable.ReasonNotDue, durable.ReasonBackoff, durable.ReasonHandedBack)
	hasWorker := slices.ContainsFunc(workers, func(w store.Worker) bool {
		return !w.Lost && slices.Contains(w.Handlers, e.Handler) && (e.Schedule == "" || slices.Contains(w.Schedules, e.Schedule))
	})
	running := 0
	for i := range entries {
		if entries[i].State == store.Running && entries[i].Handler == e.Handler {
			running++
		}
	}
	limit := stats.Limits[e.Handler].Concurrency
	paused := stats.Paused || handlerPaused || taskPaused
	room := find(durable.ReasonLimit, durable.ReasonPlaces, durable.ReasonWorkerLimit, durable.ReasonSuspect)
	switch {
	case (find(durable.ReasonStorePaused) != nil) != stats.Paused, (find(durable.ReasonHandlerPaused) != nil) != handlerPaused, (find(durable.ReasonTaskPaused) != nil) != taskPaused:
		return "a pause"
	case e.At > now && e.At != store.Farthest && (waits == nil || !waits.Until.Equal(e.At.Std())):
		return "a task that is not due"
	case e.At <= now && waits != nil && !waits.Until.IsZero():
		return "a task that is due"
	case find(durable.ReasonNoWorker) != nil && hasWorker && !mayBeLost:
		return "a worker that is there"
	case find(durable.ReasonNoWorker) == nil && !hasWorker && !(paused && e.At <= now):
		return "a worker that is missing"
	case room != nil && (paused || e.At > now || room.Count == 0 || len(room.Holders) == 0):
		return "room"
	case e.At <= now && !paused && hasWorker && find(durable.ReasonNoWorker) == nil && (find(durable.ReasonLimit) != nil) != (limit > 0 && running >= limit):
		return "a limit"
	}
	return ""
}

// hasEndedLease reports whether a lease has ended. Its worker counts as lost for Explain,
// although the store may not know it.
func hasEndedLease(entries []store.Entry, now store.Time) bool {
	return slices.ContainsFunc(entries, func(e store.Entry) bool { return e.State == store.Running && e.At <= now })
}
