package durable

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/store"
)

// An Explanation says why a task does not run: see [Client.Explain].
type Explanation struct {
	ID    string    `json:"id"` // see Info.ID
	State State     `json:"state"`
	Now   time.Time `json:"now"` // the store's time, of which the Reasons are
	// Reasons holds all that keeps the task from running now. It has at least one element.
	Reasons []Reason `json:"reasons"`
}

// A Reason is one of the things that keep a task from running.
type Reason struct {
	Kind ReasonKind `json:"kind"`
	// Text says the same as the other fields, in one sentence for people.
	Text string `json:"text"`
	// Until is when the reason ends by itself. It is zero if that is not known.
	Until time.Time `json:"until,omitzero"`
	// Note is the note of a pause, or the latest error or reason of a run that failed or was
	// handed back.
	Note string `json:"note,omitempty"`
	// Count is how many tasks run where there is no room, or how often the run was handed
	// back.
	Count int `json:"count,omitempty"`
	// Holders are tasks that take the room, at most 10, the longest first.
	Holders []Holder `json:"holders,omitempty"`
	// Worker is the [WorkerInfo.ID] of the Worker that the reason is about.
	Worker string `json:"worker,omitempty"`
	// AsOf is the Worker's latest contact, if only the Worker knows whether the reason holds
	// now.
	AsOf time.Time `json:"as_of,omitzero"`
}

// A Holder is a running task that takes the room of another.
type Holder struct {
	Worker string `json:"worker"` // a WorkerInfo.ID
	WorkerTask
}

// A ReasonKind says what keeps a task from running.
type ReasonKind string

const (
	ReasonNotDue        ReasonKind = "not due"        // it is due at Until
	ReasonBackoff       ReasonKind = "backoff"        // an attempt failed with Note; the next one is due at Until
	ReasonHandedBack    ReasonKind = "handed back"    // Workers handed it back Count times, the last time for Note; Until if it waits for that
	ReasonTaskPaused    ReasonKind = "task paused"    // see Client.PauseTask
	ReasonHandlerPaused ReasonKind = "handler paused" // see Client.PauseHandler; Note is its note
	ReasonStorePaused   ReasonKind = "store paused"   // see Client.Pause
	ReasonNoWorker      ReasonKind = "no worker"      // no Worker that lives has its handler and schedule
	ReasonLimit         ReasonKind = "limit"          // the handler's Limit.Concurrency is reached, by Holders
	ReasonRate          ReasonKind = "rate"           // the handler's Limit.Rate may hold it back
	ReasonGroupLimit    ReasonKind = "group limit"    // the handler's Limit.GroupConcurrency is reached by its group, by Holders
	ReasonGroupRate     ReasonKind = "group rate"     // the handler's Limit.GroupRate may hold it back
	ReasonPlaces        ReasonKind = "places"         // all places of the Worker that it may use are taken, by Holders
	ReasonWorkerLimit   ReasonKind = "worker limit"   // WithHandlerConcurrency of the Worker is reached, by Holders
	ReasonWorkerRate    ReasonKind = "worker rate"    // WithRate of the Worker may hold it back
	ReasonSuspect       ReasonKind = "suspect"        // its run has crashed often: it waits for other such runs, Holders
	ReasonDue           ReasonKind = "due"            // nothing is known to hold it back: the next claim may get it
	ReasonRunning       ReasonKind = "running"        // it runs, on Worker; its lease ends at Until unless it is extended
	ReasonLeaseLost     ReasonKind = "lease lost"     // its Worker is lost; another claims it after Until
	ReasonDead          ReasonKind = "dead"           // it is a dead letter, because of Note
	ReasonPast          ReasonKind = "past"           // the run is over
)

// maxHolders bounds Reason.Holders.
const maxHolders = 10

// Explain says why the task with a key or an [Info.ID] does not run. The error is
// [ErrNotFound] if there is no such task. O(n) for n Workers and running tasks.
//
// The answer is of one moment: what it reads of Workers and of other tasks may be some
// milliseconds younger than the task.
func (c *Client) Explain(ctx context.Context, id string) (Explanation, error) {
	if err := checkID(id); err != nil {
		return Explanation{}, err
	}
	shard := c.shardOf(id)
	e, err := c.store.Get(ctx, shard, id)
	if err != nil {
		return Explanation{}, clientError(err)
	}
	now, err := c.store.Now(ctx, shard)
	if err != nil {
		return Explanation{}, clientError(err)
	}
	x := &explainer{Explanation: Explanation{ID: e.ID, State: e.State, Now: now.Std()}, entry: &e, now: now}
	if e.State == Pending || e.State == Running {
		if x.workers, err = c.readWorkers(ctx, x.addRunning); err != nil {
			return Explanation{}, err
		}
		if x.inShard, err = c.store.Workers(ctx, shard); err != nil {
			return Explanation{}, clientError(err)
		}
		if x.stats, err = c.store.Stats(ctx, shard); err != nil {
			return Explanation{}, clientError(err)
		}
	}
	x.explain()
	return x.Explanation, nil
}

// An explainer collects the reasons for one task.
type explainer struct {
	Explanation
	entry    *store.Entry
	now      store.Time
	workers  []WorkerInfo
	inShard  []store.Worker // of the task's shard
	stats    store.Stats    // of the task's shard
	running  []Holder       // of the handler
	inGroup  []Holder       // of the handler and the task's group
	suspects []Holder       // running suspects
}

func (x *explainer) addRunning(e *store.Entry) {
	h := Holder{workerID(e.Worker), workerTaskOf(e)}
	if e.Handler == x.entry.Handler {
		x.running = append(x.running, h)
		if e.Group == x.entry.Group {
			x.inGroup = append(x.inGroup, h)
		}
	}
	if e.Suspect {
		x.suspects = append(x.suspects, h)
	}
}

func (x *explainer) add(kind ReasonKind, format string, args ...any) *Reason {
	x.Reasons = append(x.Reasons, Reason{Kind: kind, Text: fmt.Sprintf(format, args...)})
	return &x.Reasons[len(x.Reasons)-1]
}

// addHolders adds a reason with the tasks that take the room.
func (x *explainer) addHolders(kind ReasonKind, holders []Holder, format string, args ...any) *Reason {
	r := x.add(kind, format, args...)
	r.Count = len(holders)
	slices.SortStableFunc(holders, func(a, b Holder) int { return a.Since.Compare(b.Since) })
	r.Holders = slices.Clone(holders[:min(len(holders), maxHolders)])
	return r
}

func (x *explainer) explain() {
	switch e := x.entry; e.State {
	case Past:
		x.add(ReasonPast, "the run is over")
	case Dead:
		r := x.add(ReasonDead, "it is a dead letter since %s", timeText(e.At))
		r.Note = latestText(e)
	case Running:
		x.explainRunning()
	default:
		x.explainPause()
		x.explainTime()
		if e.At <= x.now && len(x.Reasons) == 0 {
			x.explainRoom()
		} else if e.At > x.now {
			x.explainWorkers()
		}
		if e.At <= x.now && len(x.Reasons) == 0 {
			x.add(ReasonDue, "it is due since %s, and nothing is known to hold it back", timeText(e.At))
		}
		x.explainHandBacks()
	}
}

func (x *explainer) explainRunning() {
	e := x.entry
	id := workerID(e.Worker)
	lost := e.At <= x.now
	for _, w := range x.workers {
		lost = lost || w.ID == id && w.Lost
	}
	var r *Reason
	if lost {
		r = x.add(ReasonLeaseLost, "its worker is lost; another one gets it after its lease has ended at %s", timeText(e.At))
	} else {
		r = x.add(ReasonRunning, "it runs since %s", timeText(store.TimeOf(claimedAt(e))))
		if e.Stopping {
			r.Text += ", and was cancelled"
		}
	}
	r.Worker, r.Until = id, e.At.Std()
}

func (x *explainer) explainPause() {
	e := x.entry
	if x.stats.Paused {
		x.add(ReasonStorePaused, "the store is paused until it is resumed")
	}
	if p, ok := x.stats.PausedHandlers[e.Handler]; ok {
		r := x.add(ReasonHandlerPaused, "its handler %q is paused since %s until it is resumed", e.Handler, timeText(p.Since))
		r.Note = p.Note
	}
	if e.Waits() || e.At == store.Farthest && e.Repeats() {
		x.add(ReasonTaskPaused, "it is paused until it is resumed")
	}
}

// explainTime adds reasons for a task that is not due.
func (x *explainer) explainTime() {
	e := x.entry
	if e.At == store.Farthest && e.Repeats() {
		return // paused
	}
	last := len(e.Failures) - 1
	switch {
	case e.At <= x.now, last >= 0 && e.Failures[last].HandBacks > 0:
		return // see explainHandBacks
	case last >= 0:
		r := x.add(ReasonBackoff, "attempt %d failed, and the next one is due at %s", e.Failures[last].Attempt, timeText(e.At))
		r.Note, r.Until = e.Failures[last].Text, e.At.Std()
	default:
		x.add(ReasonNotDue, "it is due at %s", timeText(e.At)).Until = e.At.Std()
	}
}

// explainHandBacks adds a reason if the run was handed back.
func (x *explainer) explainHandBacks() {
	e := x.entry
	for i, f := range e.Failures {
		if f.HandBacks == 0 {
			continue
		}
		r := x.add(ReasonHandedBack, "it was handed back %s", times(f.HandBacks))
		r.Note, r.Count = f.Text, f.HandBacks
		if e.At > x.now && i == len(e.Failures)-1 {
			r.Text += ", and is due again at " + timeText(e.At)
			r.Until = e.At.Std()
		}
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprint(n, " times")
}

// able returns the Workers that can run the task and live. unknown says that there are also
// Workers of an older version, which do not tell their places.
func (x *explainer) able() (able []*WorkerInfo, unknown bool) {
	for i := range x.inShard {
		w := &x.inShard[i]
		if w.Lost || !slices.Contains(w.Handlers, x.entry.Handler) || x.entry.Schedule != "" && !slices.Contains(w.Schedules, x.entry.Schedule) {
			continue
		}
		j := slices.IndexFunc(x.workers, func(info WorkerInfo) bool { return info.ID == workerID(w.Number) })
		switch {
		case j < 0 || x.workers[j].Places == 0:
			unknown = true
		case !x.workers[j].Lost:
			able = append(able, &x.workers[j])
		}
	}
	return able, unknown
}

// explainWorkers adds a reason if no Worker can run the task.
func (x *explainer) explainWorkers() (able []*WorkerInfo, unknown bool) {
	able, unknown = x.able()
	if len(able) > 0 || unknown {
		return able, unknown
	}
	e := x.entry
	what := fmt.Sprintf("the handler %q", e.Handler)
	if e.Schedule != "" {
		what += fmt.Sprintf(" and the schedule %q", e.Schedule)
	}
	r := x.add(ReasonNoWorker, "no worker has %s", what)
	var lost []string
	for _, w := range x.workers {
		if _, ok := w.findHandler(e.Handler); ok && w.Lost {
			lost = append(lost, w.ID)
		}
	}
	if len(lost) > 0 {
		r.Text += "; lost workers had it: " + strings.Join(lost[:min(len(lost), maxHolders)], ", ")
	}
	return nil, false
}

// explainRoom adds reasons for a due task that is not paused.
func (x *explainer) explainRoom() {
	e := x.entry
	able, unknown := x.explainWorkers()
	if len(x.Reasons) > 0 {
		return
	}
	l := x.stats.Limits[e.Handler]
	if l.Concurrency > 0 && len(x.running) >= l.Concurrency {
		x.addHolders(ReasonLimit, x.running, "%d of at most %d tasks of the handler %q run on all workers", len(x.running), l.Concurrency, e.Handler)
	}
	if e.Group != "" && l.GroupConcurrency > 0 && len(x.inGroup) >= l.GroupConcurrency {
		x.addHolders(ReasonGroupLimit, x.inGroup, "%d of at most %d tasks of the group %q of the handler %q run on all workers", len(x.inGroup), l.GroupConcurrency, e.Group, e.Handler)
	}
	var reasons []Reason
	full := !unknown
	for _, w := range able {
		before := len(x.Reasons)
		full = x.explainWorkerRoom(w) && full
		reasons = append(reasons, x.Reasons[before:]...)
		x.Reasons = x.Reasons[:before]
	}
	switch {
	case full: // no Worker has room
		x.Reasons = append(x.Reasons, reasons...)
	case len(x.Reasons) > 0:
	case e.Suspect && len(x.suspects) > 0:
		x.addHolders(ReasonSuspect, x.suspects, "its run has crashed %s, and a worker runs few such runs at a time; %d run now", times(e.Crashes), len(x.suspects))
	case e.Group != "" && l.GroupRate > 0:
		x.add(ReasonGroupRate, "at most %g tasks of the group %q of the handler %q start in a second on all workers", l.GroupRate, e.Group, e.Handler)
	case l.Rate > 0:
		x.add(ReasonRate, "at most %g tasks of the handler %q start in a second on all workers", l.Rate, e.Handler)
	default:
		for _, r := range reasons {
			if r.Kind == ReasonWorkerRate {
				x.Reasons = append(x.Reasons, r)
			}
		}
	}
}

// explainWorkerRoom adds the reason for which a Worker has no room for the task. It returns
// false if there is none, or only a rate.
func (x *explainer) explainWorkerRoom(w *WorkerInfo) (full bool) {
	i, _ := w.findHandler(x.entry.Handler)
	h := w.Handlers[i]
	free, spare := w.Places-len(w.Running), places.Spare(w.Places, len(w.Handlers))
	holders := func(handler string) (holders []Holder) {
		for _, t := range w.Running {
			if handler == "" || t.Handler == handler {
				holders = append(holders, Holder{w.ID, t})
			}
		}
		return holders
	}
	var r *Reason
	switch {
	case h.Places > 0 && h.Running >= h.Places:
		r = x.addHolders(ReasonWorkerLimit, holders(h.Handler), "worker %s runs %d of at most %d tasks of the handler %q", w.ID, h.Running, h.Places, h.Handler)
	case free <= 0:
		r = x.addHolders(ReasonPlaces, holders(""), "all %d places of worker %s are taken", w.Places, w.ID)
	case h.Running > 0 && free <= spare:
		r = x.addHolders(ReasonPlaces, holders(""), "%d of %d places of worker %s are taken, and the others are only for handlers that run nothing", len(w.Running), w.Places, w.ID)
	case h.Rate > 0:
		r = x.add(ReasonWorkerRate, "worker %s starts at most %g tasks of the handler %q in a second", w.ID, h.Rate, h.Handler)
	default:
		return false
	}
	r.Worker, r.AsOf = w.ID, w.Contact
	return r.Kind != ReasonWorkerRate
}

func latestText(e *store.Entry) string {
	if len(e.Failures) == 0 {
		return ""
	}
	return e.Failures[len(e.Failures)-1].Text
}

// timeText returns a time for people: UTC, to the second.
func timeText(t store.Time) string { return t.Std().UTC().Format(time.RFC3339) }
