package kafka

import (
	"context"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

// A side is one implementation under load.
type side interface {
	// Name is the heading of the side's column.
	Name() string
	// Open makes what the requests wait in. Requests are r's, and tell it of
	// their completion and expiry.
	Open(r *run)
	// Submit is the arrival of request i.
	Submit(i int) (answerable, error)
	// Left returns how much there still is of requests: their places in lists, and
	// their timers.
	Left() (watched, timers int)
	// Close ends the side, and returns when no callback runs any more. It returns how
	// many requests still waited, and neither complete nor expire any more.
	Close() (waiting int, err error)
}

// An answerable is a request that has arrived.
type answerable interface{ answer() }

// ticklessPurgatory is package purgatory.
type ticklessPurgatory struct {
	r *run
	s *timer.Scheduler
	p *purgatory.Purgatory[int32]
	// check: an answer checks a key rather than forcing its request.
	check bool
}

func (*ticklessPurgatory) Name() string { return "tickless" }

func (t *ticklessPurgatory) Open(r *run) {
	t.r, t.check = r, r.plan.config.Complete == "check"
	t.s = timer.New()
	t.p = purgatory.New[int32](t.s)
}

func (t *ticklessPurgatory) Submit(i int) (answerable, error) {
	q := &ticklessRequest{side: t, i: i}
	_, err := t.p.TryCompleteElseWatch(q, t.r.plan.config.Timeout, t.r.plan.keysOf(i)...)
	return q, err
}

func (t *ticklessPurgatory) Left() (watched, timers int) {
	return t.p.Stats().Watched, t.s.Len()
}

func (t *ticklessPurgatory) Close() (waiting int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := t.p.Shutdown(ctx); err != nil {
		return 0, err
	}
	for range t.p.Leftover() {
		waiting++
	}
	return waiting, t.s.Shutdown(ctx)
}

type ticklessRequest struct {
	purgatory.Delayed[int32]
	side  *ticklessPurgatory
	i     int
	ready atomic.Bool
}

func (q *ticklessRequest) TryComplete() bool { return q.ready.Load() }
func (q *ticklessRequest) OnComplete()       { q.side.r.completed(q.i) }
func (q *ticklessRequest) OnExpiration()     { q.side.r.expired(q.i) }

func (q *ticklessRequest) answer() {
	if !q.side.check {
		q.ForceComplete()
		return
	}
	q.ready.Store(true)
	q.side.p.CheckAndComplete(q.side.r.plan.keysOf(q.i)[0])
}

// plainPurgatory is what one writes without a library: a map under a mutex, and
// time.AfterFunc.
type plainPurgatory struct {
	r     *run
	check bool

	mu      sync.Mutex
	waiting map[int32]map[*plainRequest]struct{}
	n       int

	expiring sync.WaitGroup // raised with mu held
}

type plainRequest struct {
	side  *plainPurgatory
	i     int
	ready atomic.Bool

	// Guarded by side.mu.

	timer *time.Timer
	done  bool
}

func (*plainPurgatory) Name() string { return "AfterFunc+map" }

func (t *plainPurgatory) Open(r *run) {
	t.r, t.check = r, r.plan.config.Complete == "check"
	t.waiting = make(map[int32]map[*plainRequest]struct{})
}

func (t *plainPurgatory) Submit(i int) (answerable, error) {
	q := &plainRequest{side: t, i: i}
	if q.ready.Load() {
		t.r.completed(i)
		return q, nil
	}
	t.mu.Lock()
	for _, key := range t.r.plan.keysOf(i) {
		set := t.waiting[key]
		if set == nil {
			set = make(map[*plainRequest]struct{})
			t.waiting[key] = set
		}
		set[q] = struct{}{}
	}
	t.n++
	q.timer = time.AfterFunc(t.r.plan.config.Timeout, q.expire)
	t.mu.Unlock()
	if q.ready.Load() {
		q.complete()
	}
	return q, nil
}

// take takes the request out, and reports false if it was out before. If it has expired,
// Close waits until that is said.
func (q *plainRequest) take(expired bool) bool {
	t := q.side
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.done {
		return false
	}
	q.done = true
	q.timer.Stop()
	if expired {
		t.expiring.Add(1)
	}
	for _, key := range t.r.plan.keysOf(q.i) {
		set := t.waiting[key]
		delete(set, q)
		if len(set) == 0 {
			delete(t.waiting, key)
		}
	}
	t.n--
	return true
}

func (q *plainRequest) complete() {
	if q.take(false) {
		q.side.r.completed(q.i)
	}
}

func (q *plainRequest) expire() {
	if q.take(true) {
		defer q.side.expiring.Done()
		q.side.r.completed(q.i)
		q.side.r.expired(q.i)
	}
}

func (q *plainRequest) answer() {
	t := q.side
	if !t.check {
		q.complete()
		return
	}
	q.ready.Store(true)
	var ready []*plainRequest
	t.mu.Lock()
	for w := range t.waiting[t.r.plan.keysOf(q.i)[0]] {
		if w.ready.Load() {
			ready = append(ready, w)
		}
	}
	t.mu.Unlock()
	for _, w := range ready {
		w.complete()
	}
}

func (t *plainPurgatory) Left() (watched, timers int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, set := range t.waiting {
		watched += len(set)
	}
	return watched, t.n
}

func (t *plainPurgatory) Close() (waiting int, err error) {
	t.mu.Lock()
	waiting = t.n
	for _, set := range t.waiting {
		for q := range set {
			q.done = true
			q.timer.Stop()
		}
	}
	t.mu.Unlock()
	t.expiring.Wait()
	return waiting, nil
}

// noPurgatory completes what is answered and expires everything else at once:
// what is left is the load's own cost.
type noPurgatory struct{ r *run }

func (*noPurgatory) Name() string  { return "the load alone" }
func (n *noPurgatory) Open(r *run) { n.r = r }

func (n *noPurgatory) Submit(i int) (answerable, error) {
	if !n.r.plan.answered(i) {
		n.r.completed(i)
		n.r.expired(i)
	}
	return &noRequest{n, i}, nil
}

func (*noPurgatory) Left() (watched, timers int) { return 0, 0 }
func (*noPurgatory) Close() (int, error)         { return 0, nil }

type noRequest struct {
	side *noPurgatory
	i    int
}

func (q *noRequest) answer() { q.side.r.completed(q.i) }
