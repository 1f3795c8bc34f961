package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
)

// A ledger knows what the model of the store cannot see: which handlers run, what they got
// and returned, and what clients were told.
type ledger struct {
	*simulation
	mu       sync.Mutex
	lives    []*life // of Workers that run or have run
	running  map[store.Lease]*execution
	attempts map[store.Lease]*execution // all that were claimed
	contents map[string]durable.Task    // what clients schedule, by Body
	doneRuns map[string]bool            // idempotency keys of runs whose success was accepted
	waits    map[string]time.Time       // since when a condition of the calm has been broken
}

// An execution is an attempt, and the call of a handler.
type execution struct {
	sender   string    // the loop that has claimed it
	attempts int       // earlier ones of the run
	leaseEnd time.Time // as the worker counts it: when a tenth is left, and a tick has passed
	reported bool
	silent   int // rounds of the sender since leaseEnd that did not extend the lease

	*life       // nil until the handler is called
	delivery    durable.Delivery
	entry       store.Entry  // when it began
	content     durable.Task // what the client has scheduled
	began       time.Time
	cancelledAt time.Time // when a Cancel of the running task was carried out
	isOwnCancel bool      // the Client of its Worker has sent the Cancel
	inCalm      bool      // it has begun in the calm
	contextDone bool
	endedBefore int // suspects of the life that had ended when the context did
	returned    bool
	how         string        // how it has ended
	delay       time.Duration // what it returned to RetryAfter or HandBack
}

// An operation is a call of a Client that changes tasks.
type operation struct {
	name       string
	version    int64                    // of IfVersion, or 0
	repeats    bool                     // the call sends new commands if the outcome is unknown
	whens      map[string]store.When    // what the call has asked for, by id, except Next
	done       map[string]store.Outcome // the outcomes of the items that were carried out, by id
	superseded bool                     // a Sync changed nothing
	isFinal    bool                     // the call has returned, and its answer was final
}

type operationKey struct{}

// note records what a client schedules. The Body must be unique.
func (l *ledger) note(t *durable.Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contents[string(t.Body)] = *t
}

// begin records that a handler begins, and checks that it may.
func (l *ledger) begin(ctx context.Context, v *life, d *durable.Delivery) *execution {
	e := l.leased(v, d)
	lease, run := store.Lease{ID: e.ID, Token: d.Token}, d.IdempotencyKey()
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.attempts[lease]
	if x == nil || x.life != nil {
		l.fail("token", "%s: two handlers run %q with token %d, or it was not claimed", v.name, d.Key, d.Token)
		x = new(execution)
	}
	x.life, x.delivery, x.entry, x.content, x.began, x.inCalm = v, *d, e, l.contents[string(d.Body)], time.Now(), l.settled()
	l.trace(v.name, "begin %q attempt %d, crashes %d, token %d, suspect %v", d.Key, d.Attempt, d.Crashes, d.Token, x.entry.Suspect)
	l.running[lease] = x
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		x.contextDone, x.endedBefore = true, v.suspectsEnded
		if v.isLive && time.Now().After(x.leaseEnd) {
			l.fail("late", "%s: the context of %q with token %d has ended %v after the lease", v.name, d.Key, d.Token, time.Since(x.leaseEnd))
		}
	})
	all, ofHandler, suspects, last := l.countLocked(v, d.Handler)
	c := v.config.handlers[d.Handler]
	wrong := x.wrongDelivery(ctx, c, l.clockWasSet.Load())
	switch {
	case l.doneRuns[run]:
		l.fail("done twice", "%s: a run of %q that was done begins again", v.name, d.Key)
	case wrong != "":
		l.fail("delivery", "%s: %s of %+v, which was scheduled as %+v and is %+v", v.name, wrong, *d, x.content, x.entry)
	case x.entry.Suspect && (suspects > 1+v.suspectsEnded || last && suspects > 1):
		l.fail("suspects", "%s: %q begins, and %d suspects run; one is a last one: %v; %d have ended", v.name, d.Key, suspects, last, v.suspectsEnded)
	case all > v.config.concurrency:
		l.fail("places", "%s: %d handlers run in %d places", v.name, all, v.config.concurrency)
	case c.most > 0 && ofHandler > c.most:
		l.fail("handler limit", "%s: handler %s runs %d times, more than %d", v.name, d.Handler, ofHandler, c.most)
	case c.rate > 0 && x.inCalm:
		v.begun[d.Handler] = append(v.begun[d.Handler], x.began)
		for i, since := range v.begun[d.Handler] {
			if n := float64(len(v.begun[d.Handler]) - i); n > max(1, c.rate/10)+c.rate*x.began.Sub(since).Seconds()+1 {
				l.fail("handler rate", "%s: handler %s has begun %v times since %v, with a rate of %v", v.name, d.Handler, n, since, c.rate)
			}
		}
	}
	return x
}

// timeout returns how long the handler may run.
func (x *execution) timeout() time.Duration {
	return cmp.Or(x.content.Timeout, x.config.handlers[x.delivery.Handler].timeout)
}

// leased returns the entry of a delivery, which must have a lease.
func (l *ledger) leased(v *life, d *durable.Delivery) (e store.Entry) {
	_ = l.server.withShard(store.ShardOf(d.Key, l.shards), func(j *storetest.Judge, now store.Time) {
		var ok bool
		if e, ok = j.Leased(d.Token); !ok || store.KeyOf(e.ID) != d.Key {
			l.fail("lease", "%s: a handler begins with %q at %d without a lease; the entry with token %d is %+v", v.name, d.Key, now, d.Token, e)
		}
	})
	return e
}

// wrongDelivery returns what of a delivery is wrong, or an empty string.
func (x *execution) wrongDelivery(ctx context.Context, c *handlerConfig, clockWasSet bool) string {
	d, e, t := &x.delivery, &x.entry, &x.content
	deadline, _ := ctx.Deadline()
	ended, follows := e.FollowedRun()
	due, claimed := store.TimeOf(d.Due), store.Time(d.Token)
	skipped := due.Sub(e.Due)
	isFirst := d.Attempt == d.Crashes+1 && !e.Following && !e.Stopping && !clockWasSet // a Cancel ends Following
	switch {
	case t.Handler != d.Handler || !maps.Equal(t.Headers, d.Headers):
		return "the content"
	case d.Group != e.Group || d.Ended == nil && d.Group != t.Group:
		return "the group"
	case d.Attempt != e.Attempts || d.Crashes != e.Crashes || d.Attempt > d.MaxAttempts || d.LastAttempt != (d.Attempt == d.MaxAttempts) ||
		d.MaxAttempts != cmp.Or(t.MaxAttempts, c.attempts):
		return "the number of attempts"
	case d.Crashes >= x.config.maxCrashes:
		return "the number of crashes"
	case follows != (d.Ended != nil) || follows && (*d.Ended != durable.Ended{Done: ended.Done, Due: d.Ended.Due, Attempts: ended.Attempts, Crashes: ended.Crashes, Error: ended.Text} || store.TimeOf(d.Ended.Due) != ended.Due):
		return "the run that it follows"
	case time.Until(deadline) != x.timeout():
		return "the timeout"
	case t.Missed != durable.LatestMissed && skipped != 0, skipped < 0, t.Every > 0 && skipped%t.Every.Round(time.Microsecond) != 0:
		return "the due time"
	case isFirst && t.Missed == durable.LatestMissed && x.nextRun() != store.When{} && x.nextRun().From(0) < claimed.Add(-time.Millisecond):
		return "a run that is not the latest one"
	case isFirst && t.Missed == durable.DeadMissed && d.Crashes == 0 && claimed.Sub(due) > t.MissedAfter+time.Millisecond:
		return "a run that is too late"
	}
	return ""
}

// nextRun returns when the run after an execution is due, or zero if there is none.
func (x *execution) nextRun() store.When {
	t, due := &x.content, x.delivery.Due
	switch {
	case store.IsSingle(x.entry.ID):
		return store.When{}
	case t.Every > 0:
		due = due.Add(t.Every)
	case t.Schedule != "":
		due = due.Add(period)
	case t.Cron != "":
		due = due.Truncate(time.Minute).Add(time.Minute)
	default:
		return store.When{}
	}
	if at := store.TimeOf(due); t.End.IsZero() || at <= store.TimeOf(t.End) {
		return store.At(at)
	}
	return store.When{}
}

// wrongReport returns what of the report on an attempt is wrong, or an empty string.
func (x *execution) wrongReport(r *store.Report) string {
	switch {
	case x.reported:
		return "the second end"
	case x.life == nil && (r.End != store.HandBack && r.End != store.Dropped || x.attempts > 0 && strings.HasPrefix(r.Text, "durable: missed")):
		return "the end without a call"
	case x.life == nil || r.End == store.HandBack && !x.isLive: // the Worker has shut down
		return ""
	case !x.returned:
		return "the end before the handler's"
	}
	want, next := store.Retry, store.When{}
	if x.delivery.LastAttempt {
		want = store.Failed
	}
	switch x.how {
	case "done":
		want = store.Done
	case "no retry":
		want = store.Failed
	case "hand back":
		want = store.HandBack
	}
	if want == store.Done || want == store.Failed {
		next = x.nextRun()
	} else {
		next = store.After(x.delay)
	}
	micros, isDelay := r.Next.Parts()
	isBackoff := want == store.Retry && x.how != "retry after" && isDelay && micros <= maxBackoff.Microseconds()
	switch {
	case r.End != want:
		return "the end"
	case r.Due != store.TimeOf(x.delivery.Due):
		return "the due time"
	case r.Next != next && !isBackoff:
		return "the next time"
	case r.Keep != x.entry.ActsAtEnd():
		return "what is kept"
	case x.how == "done" && x.content.Retention != (durable.Retention{}) && !strings.HasSuffix(string(r.Result), x.how):
		return "the result"
	}
	return ""
}

// countLocked returns how many places of a life handlers take, how many handlers with this
// name run, and how many suspects, except those whose contexts have ended. last says that one of
// them dies if it crashes again. A handler that has not returned after twice its timeout takes
// no place. A timeout is at least 50 ms here.
func (l *ledger) countLocked(v *life, handler string) (all, ofHandler, suspects int, last bool) {
	for _, x := range l.running {
		if x.life != v {
			continue
		}
		if x.delivery.Handler == handler {
			ofHandler++
		}
		if !x.contextDone || time.Since(x.began) < 100*time.Millisecond {
			all++
		}
		if x.entry.Suspect && !x.contextDone {
			suspects++
			last = last || x.delivery.Crashes+1 >= v.config.maxCrashes
		}
	}
	return all, ofHandler, suspects, last
}

func (l *ledger) end(x *execution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.returned = true; x.entry.Suspect {
		x.suspectsEnded++
	}
	delete(l.running, store.Lease{ID: x.entry.ID, Token: x.delivery.Token})
	if x.inCalm && x.isLive && x.how == durable.ErrLeaseLost.Error() {
		l.fail("lost lease", "%s: the lease of %q with token %d was lost in calm", x.name, x.delivery.Key, x.delivery.Token)
	}
	l.trace(x.name, "end %q token %d: %s", x.delivery.Key, x.delivery.Token, x.how)
}

// answeredRound records the leases that a round has got, and which runs are done. It checks
// the reports and the claim of a round that is not repeated.
func (l *ledger) answeredRound(sender string, r *store.Round, a *store.Answer, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	leaseEnd := time.Now().Add(r.Lease - r.Lease/10 + time.Millisecond)
	for i := range a.Tasks {
		t := &a.Tasks[i]
		lease := store.Lease{ID: t.ID, Token: t.Token}
		if l.attempts[lease] == nil {
			l.attempts[lease] = &execution{sender: sender, attempts: t.Attempts}
		}
		l.attempts[lease].leaseEnd = leaseEnd
	}
	if !isNew {
		return
	}
	for i, lease := range r.Extend {
		if x := l.attempts[lease]; x != nil && a.Extensions[i] != store.Lost {
			x.leaseEnd = leaseEnd
		}
	}
	for i := range r.Reports {
		report := &r.Reports[i]
		x := l.attempts[report.Lease]
		if wrong := x.wrongReport(report); wrong != "" {
			l.fail("report", "%s is wrong in the report %+v on %+v", wrong, *report, x)
		}
		if x.reported = true; report.End == store.Done && a.Receipts[i] != store.Refused {
			l.doneRuns[x.delivery.IdempotencyKey()] = true
		}
	}
	for lease, x := range l.running {
		if x.sender != sender || !x.entry.Suspect || !time.Now().After(x.leaseEnd) || slices.Contains(r.Extend, lease) {
			continue
		}
		// The worker knows since the round before this one that it has lost the lease.
		if x.silent++; x.silent > 1 && r.Claim.Suspects > 1+x.suspectsEnded-x.endedBefore {
			l.fail("suspects", "%s: a claim may get %d suspects after the crash of %q with token %d", x.name, r.Claim.Suspects, x.delivery.Key, x.delivery.Token)
		}
	}
}

// left checks that a loop which leaves its shard has handed its attempts back.
func (l *ledger) left(sender string, j *storetest.Judge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for lease, x := range l.running {
		_, isLeased := j.Leased(lease.Token)
		// A loop gives up the lease of a handler that hangs. After five seconds without an answer it ends.
		if x.sender == sender && isLeased && !x.reported && time.Since(x.began) < x.timeout() && time.Since(x.stoppedAt) < 5*time.Second {
			l.fail("not handed back", "%s ends without a report on %q with token %d", x.name, x.delivery.Key, lease.Token)
		}
	}
}

// carriedOut records the outcomes of a command. The server calls it once for each command.
func (l *ledger) carriedOut(from string, op *operation, c *store.Command, out []store.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.running {
		i := slices.IndexFunc(c.Items, func(item store.Item) bool { return item.ID == x.entry.ID })
		if i >= 0 && out[i] == store.Stopping {
			x.cancelledAt, x.isOwnCancel = time.Now(), from == x.end.name
		}
	}
	if op == nil {
		return
	}
	if op.isFinal && !op.repeats {
		l.fail("final", "%s of %s was carried out after its final answer", op.name, idsOf(c.Items))
	}
	for i, o := range out {
		id := c.Items[i].ID
		if op.version > 0 && c.Items[i].IfVersion == 0 {
			l.fail("version", "%s of %q is sent without its version", op.name, id)
		}
		if want, ok := op.whens[id]; ok && !c.Items[i].When.IsZero() && c.Items[i].When != want {
			l.fail("when", "%s of %q is sent with %v, and asked for %v", op.name, id, c.Items[i].When, want)
		}
		if c.Op == store.Sync && i == 0 {
			op.superseded = op.superseded || o == store.Kept
			continue
		}
		if old, twice := op.done[id]; twice && !op.repeats && !(old == store.Kept && c.Op == store.Reschedule) { // ResumeTask may reschedule
			l.fail("carried out twice", "%s of %q", op.name, id)
		}
		op.done[id] = o
	}
}

// answered checks what a call of a Client has returned.
func (l *ledger) answered(op *operation, ids []string, out []durable.Outcome, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	op.isFinal = !errors.Is(err, durable.ErrUnknown)
	for i, id := range ids {
		got := durable.Unknown
		if i < len(out) {
			got = out[i]
		}
		want, done := op.done[id]
		// ResumeTask reads a task that it has not resumed.
		ok := done && (got == want || want == store.Kept && strings.HasSuffix(op.name, "ResumeTask"))
		if err != nil && got == durable.Unknown {
			ok = !done || !op.isFinal || op.repeats || want == store.Kept
		}
		if !ok {
			l.fail("outcome", "%s of %q returned %v, %v; it was carried out: %v, with outcome %v", op.name, id, got, err, done, want)
		}
	}
}

// lasts reports whether a condition has been true for longer than d, at each call.
func (l *ledger) lasts(what string, isTrue bool, d time.Duration) bool {
	since, ok := l.waits[what]
	switch {
	case !isTrue:
		delete(l.waits, what)
		return false
	case !ok:
		l.waits[what] = time.Now()
		return false
	}
	return time.Since(since) > d
}

// checkCalm checks what must hold while nothing fails. It is called several times a second.
func (l *ledger) checkCalm() {
	l.mu.Lock()
	var live []*life
	busy := make(map[*life]map[string]int) // by handler, and all by the empty name
	for _, v := range l.lives {
		if v.isLive {
			live, busy[v] = append(live, v), make(map[string]int)
		}
	}
	for _, x := range l.running {
		if x.isLive {
			busy[x.life][x.delivery.Handler]++
			busy[x.life][""]++
		}
	}
	for _, v := range live {
		if used := v.worker.Stats().Running; l.lasts(fmt.Sprintf("place %p", v), used > busy[v][""], 3*time.Second) {
			l.fail("lost place", "%s: %d places are in use, but %d handlers run", v.name, used, busy[v][""])
		}
	}
	for _, x := range l.running {
		limit := x.config.lease/3 + time.Second
		if x.isOwnCancel {
			limit = 200 * time.Millisecond
		}
		timeout := x.timeout()
		switch {
		case x.isLive && time.Since(x.began) > timeout+3*x.config.lease && time.Now().Before(x.leaseEnd):
			l.fail("hangs", "%s: the handler of %q has run for %v and keeps its lease", x.name, x.delivery.Key, time.Since(x.began))
		case !x.isLive || x.contextDone:
		case !x.cancelledAt.IsZero() && time.Since(x.cancelledAt) > limit && time.Since(l.calmSince) > limit:
			l.fail("cancel", "%s: the handler of %q was not told for %v that the task was cancelled", x.name, x.delivery.Key, time.Since(x.cancelledAt))
		case time.Since(x.began) > timeout:
			l.fail("timeout", "%s: the context of %q has not ended after %v", x.name, x.delivery.Key, timeout)
		}
	}
	l.mu.Unlock()
	for shard := range l.shards {
		_ = l.server.withShard(shard, func(j *storetest.Judge, now store.Time) { l.checkOverdue(j, now, live, busy) })
	}
}

// maxDelay is how long a due task or an expired lease may wait for a free worker in calm.
const maxDelay = 2500 * time.Millisecond

func (l *ledger) checkOverdue(j *storetest.Judge, now store.Time, live []*life, busy map[*life]map[string]int) {
	entries, limits := j.Entries(), j.Limits()
	running := make(map[string]int) // by handler, and by handler and group
	for i := range entries {
		if e := &entries[i]; e.State == store.Running {
			running[e.Handler]++
			running[e.Handler+"/"+e.Group]++
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		limit := limits[e.Handler]
		hasPermit := limit.Rate == 0 && (limit.Concurrency == 0 || running[e.Handler] < limit.Concurrency) &&
			(e.Group == "" || limit.GroupRate == 0 && (limit.GroupConcurrency == 0 || running[e.Handler+"/"+e.Group] < limit.GroupConcurrency))
		wanted := e.State == store.Pending && e.At <= now && !j.Paused() && !e.Waits() && !e.HandlerPaused && hasPermit && slices.ContainsFunc(live, func(v *life) bool {
			c := v.config.handlers[e.Handler]
			return c != nil && c.rate == 0 && (e.Schedule == "" || v.config.knowsSchedule) &&
				(busy[v][""] == 0 || busy[v][e.Handler] == 0 && busy[v][""] < v.config.concurrency && e.Crashes == 0)
		})
		allowed := maxDelay
		if e.Crashes > 0 {
			allowed = 20 * time.Second // suspects wait for each other
		}
		if l.lasts(fmt.Sprint("due ", e.ID, e.At), wanted, allowed) {
			l.fail("overdue", "%q is overdue for %v beside a worker that could run it: %+v", e.ID, now.Sub(e.At), *e)
		}
		if l.lasts(fmt.Sprint("lease ", e.ID, e.Token), e.State == store.Running && e.At <= now && len(live) > 0, maxDelay) {
			l.fail("expired lease", "the lease of %q has ended %v ago, and nobody has noticed: %+v", e.ID, now.Sub(e.At), *e)
		}
	}
}
