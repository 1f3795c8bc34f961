package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
)

// A ledger knows what the model of the store cannot see: which handlers run, and what
// clients were told.
type ledger struct {
	*simulation
	mu       sync.Mutex
	lives    []*life // of Workers that run or have run
	running  map[store.Lease]*execution
	doneRuns map[string]bool        // idempotency keys of runs whose success was accepted
	byLease  map[store.Lease]string // idempotency key by lease, of handlers that have begun
	waits    map[string]time.Time   // since when a condition of the calm has been broken
}

// An execution is a call of a handler.
type execution struct {
	began       time.Time
	life        *life
	handler     string
	key         string
	lease       store.Lease
	crashes     int
	isSuspect   bool
	cancelledAt time.Time // when a Cancel of the running task was carried out
	inCalm      bool      // it has begun in the calm
	contextDone bool
}

// An operation is a call of a Client that changes tasks.
type operation struct {
	name    string
	mu      sync.Mutex
	done    map[string]store.Outcome // the outcomes of the items that were carried out, by id
	isFinal bool                     // the call has returned, and its answer was final
}

type operationKey struct{}

// begin records that a handler begins, and checks that it may.
func (l *ledger) begin(v *life, handler string, d *durable.Delivery) *execution {
	run, e := d.IdempotencyKey(), l.leased(v, d)
	l.mu.Lock()
	defer l.mu.Unlock()
	x := &execution{life: v, handler: handler, key: d.Key, lease: store.Lease{ID: e.ID, Token: d.Token}, crashes: d.Crashes, began: time.Now(),
		inCalm: l.settled.Load(), isSuspect: e.Suspect}
	l.trace(v.name, "begin %q attempt %d, crashes %d, token %d", d.Key, d.Attempt, d.Crashes, d.Token)
	if x.isSuspect {
		l.trace(v.name, "suspect %q", d.Key)
	}
	if l.doneRuns[run] {
		l.fail("done twice", "%s: a run of %q that was done begins again", v.name, d.Key)
	}
	if l.running[x.lease] != nil {
		l.fail("token", "%s: two handlers run %q with token %d", v.name, d.Key, d.Token)
	}
	l.running[x.lease], l.byLease[x.lease] = x, run
	v.begun[handler]++
	all, ofHandler := l.countLocked(v, handler)
	c := v.config.handlers[handler]
	elapsed := time.Since(v.startedAt).Seconds()
	suspects, last := l.suspectsLocked(v)
	switch {
	case x.isSuspect && (suspects > 1+v.suspectsEnded || last && suspects > 1):
		l.fail("suspects", "%s: %q begins, and %d suspects run; one is a last one: %v; %d have ended", v.name, d.Key, suspects, last, v.suspectsEnded)
	case d.Attempt > d.MaxAttempts:
		l.fail("attempts", "%s: attempt %d at %q, of %d", v.name, d.Attempt, d.Key, d.MaxAttempts)
	case all > v.config.concurrency:
		l.fail("places", "%s: %d handlers run in %d places", v.name, all, v.config.concurrency)
	case c.most > 0 && ofHandler > c.most:
		l.fail("handler limit", "%s: handler %s runs %d times, more than %d", v.name, handler, ofHandler, c.most)
	case c.rate > 0 && float64(v.begun[handler]) > max(1, c.rate/10)+c.rate*elapsed+1:
		l.fail("handler rate", "%s: handler %s has begun %d times in %.3f s, with a rate of %v", v.name, handler, v.begun[handler], elapsed, c.rate)
	}
	return x
}

// leased returns the entry of a delivery, and checks that its lease has not ended.
func (l *ledger) leased(v *life, d *durable.Delivery) (e store.Entry) {
	shard := store.ShardOf(d.Key, l.shards)
	_ = l.server.withShard(shard, func(j *storetest.Judge, now store.Time) {
		var ok bool
		e, ok = j.Leased(d.Token)
		stepped := l.server.clock.offsetNow() != l.server.offsets[shard]
		if !ok || store.KeyOf(e.ID) != d.Key || e.At <= now && !stepped {
			l.fail("lease", "%s: a handler begins with %q at %d without a lease; the entry with token %d is %+v", v.name, d.Key, now, d.Token, e)
		}
	})
	return e
}

// countLocked returns how many places of a life handlers take, and how many handlers with
// this name run. A handler that has not returned after twice its timeout takes no place. A
// timeout is at least 50 ms here.
func (l *ledger) countLocked(v *life, handler string) (all, ofHandler int) {
	for _, x := range l.running {
		if x.life == v {
			if !x.contextDone || time.Since(x.began) < 100*time.Millisecond {
				all++
			}
			if x.handler == handler {
				ofHandler++
			}
		}
	}
	return all, ofHandler
}

// suspectsLocked returns how many suspects run in a life, except those whose contexts have
// ended, and whether one of them dies if it crashes again.
func (l *ledger) suspectsLocked(v *life) (n int, last bool) {
	for _, x := range l.running {
		if x.life == v && x.isSuspect && !x.contextDone {
			n++
			last = last || x.crashes+1 >= v.config.maxCrashes
		}
	}
	return n, last
}

func (l *ledger) end(x *execution, how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.isSuspect {
		x.life.suspectsEnded++
	}
	if l.running[x.lease] == x {
		delete(l.running, x.lease)
	}
	if x.inCalm && x.life.isLive && how == durable.ErrLeaseLost.Error() {
		l.fail("lost lease", "%s: the lease of %q with token %d was lost in calm", x.life.name, x.key, x.lease.Token)
	}
	l.trace(x.life.name, "end %q token %d: %s", x.key, x.lease.Token, how)
}

// watch records when the context of a handler ends.
func (l *ledger) watch(ctx context.Context, x *execution) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		x.contextDone = true
	})
}

// reported records which runs are done. The server calls it for each new round.
func (l *ledger) reported(r *store.Round, a *store.Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, x := range r.Reports {
		if run := l.byLease[x.Lease]; run != "" && x.End == store.Done && i < len(a.Receipts) && a.Receipts[i] != store.Refused {
			l.doneRuns[run] = true
		}
	}
}

// carriedOut records the outcomes of a command. The server calls it once for each command.
func (l *ledger) carriedOut(op *operation, c *store.Command, out []store.Outcome) {
	l.mu.Lock()
	for i, o := range out {
		if o == store.Stopping {
			for _, x := range l.running {
				if x.key == c.Items[i].ID {
					x.cancelledAt = time.Now()
				}
			}
		}
	}
	l.mu.Unlock()
	if op == nil {
		return
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.isFinal {
		l.fail("final", "%s of %s was carried out after its final answer", op.name, idsOf(c.Items))
	}
	for i, o := range out {
		id := c.Items[i].ID
		if _, twice := op.done[id]; twice {
			l.fail("carried out twice", "%s of %q", op.name, id)
		}
		op.done[id] = o
	}
}

// answered checks what a call of a Client has returned.
func (l *ledger) answered(op *operation, ids []string, out []durable.Outcome, err error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.isFinal = !errors.Is(err, durable.ErrUnknown)
	for i, id := range ids {
		got := durable.Unknown
		if i < len(out) {
			got = out[i]
		}
		want, done := op.done[id]
		ok := done && got == want
		if err != nil && got == durable.Unknown {
			ok = !done || !op.isFinal
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
	for _, v := range l.lives {
		if v.isLive {
			live = append(live, v)
		}
	}
	busy := make(map[*life]map[string]int)
	for _, v := range live {
		all := 0
		busy[v] = make(map[string]int)
		for h := range v.config.handlers {
			_, busy[v][h] = l.countLocked(v, h)
			all += busy[v][h]
		}
		busy[v][""] = all
		if used := v.worker.Stats().Running; l.lasts("place "+v.name, used > all, 3*time.Second) {
			l.fail("lost place", "%s: %d places are in use, but %d handlers run", v.name, used, all)
		}
	}
	for _, x := range l.running {
		limit := x.life.config.lease/3 + time.Second
		if x.life.isLive && !x.cancelledAt.IsZero() && !x.contextDone && time.Since(x.cancelledAt) > limit && time.Since(l.calmSince) > limit {
			l.fail("cancel", "%s: the handler of %q was not told for %v that the task was cancelled", x.life.name, x.key, time.Since(x.cancelledAt))
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
	running := make(map[string]int)
	for i := range entries {
		if entries[i].State == store.Running {
			running[entries[i].Handler]++
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		late := e.At <= now && !j.Paused() && !e.Waits() && !e.HandlerPaused
		limit := limits[e.Handler]
		hasPermit := limit.Rate == 0 && (limit.Concurrency == 0 || running[e.Handler] < limit.Concurrency)
		wanted := e.State == store.Pending && late && hasPermit && slices.ContainsFunc(live, func(v *life) bool {
			c := v.config.handlers[e.Handler]
			return c != nil && c.rate == 0 && (e.Schedule == "" || v.config.knowsSchedule) &&
				(busy[v][""] == 0 || busy[v][e.Handler] == 0 && busy[v][""] < v.config.concurrency-1 && e.Crashes == 0)
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
