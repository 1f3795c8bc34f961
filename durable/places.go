package durable

import (
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// places manages the places in which a Worker runs handlers, during one Run. Each
// running handler occupies one; [WithConcurrency] sets how many there are. Before a
// claim, a loop reserves places for all tasks that the claim may get. So a claimed task
// never waits for a place.
type places struct {
	w        *Worker
	handlers []*handler
	limited  bool // some handlers have a limit
	weights  int  // sum of the weights of handlers

	mu   sync.Mutex
	some sync.Cond // signalled when a loop leaves the queue or the Run is over
	size int       // how many places there are
	free int       // how many of them are neither in use nor reserved
	over bool      // the Run is over
	// waiting is the queue of loops that found no place for tasks that may be due. A
	// loop is in it at most once.
	waiting []*loop
	refill  timer.Handle // fires when a handler gets a token for which a loop may wait
	passed  time.Time    // when the store last woke others for tasks beyond this Worker's limits
	suspicion
	idle chan struct{} // closed when the Run is over and all places are free
}

// A usage is a handler's use of the places, guarded by places.mu.
type use struct {
	index  int       // in places.handlers
	taken  int       // places in use; with a limit, also those reserved for claims
	asked  int       // places of its share that claims under way request
	behind bool      // the latest claim got all tasks that it requested
	tokens float64   // how many tasks the rate allows to start now
	filled time.Time // when tokens was last updated
}

// waitReasons says what a loop in the queue waits for. One of these things is enough.
type wants struct {
	any      bool       // a place that any handler may use
	suspect  bool       // the end of the present suspect
	handlers []*handler // a place that one of these may use
}

// A grant is what a loop has reserved for a claim, and the limits of that claim.
type grant struct {
	places   int            // how many places are reserved
	rooms    []store.Room   // the claim's limits for each handler
	plain    bool           // rooms are not sent, because the claim cannot exceed them
	suspects store.Suspects // how many suspects the claim may get
	full     bool           // no place is free beside those of the grant
	fair     bool           // the claim is only for handlers below their share
	pass     bool           // the store wakes other workers for tasks beyond this Worker's limits
}

func newPlaces(w *Worker) *places {
	p := &places{w: w, size: w.config.concurrency, free: w.config.concurrency, idle: make(chan struct{})}
	p.some.L = &p.mu
	for i, name := range w.names {
		h := w.handlers[name]
		h.use = use{index: i, tokens: h.burst(), filled: w.now()}
		p.handlers = append(p.handlers, h)
		p.limited = p.limited || h.isLimited()
		p.weights += h.weight
	}
	return p
}

func (h *handler) isLimited() bool { return h.limit > 0 || h.rate > 0 }

// burst returns how many tasks may start at once: what the rate allows in a tenth of a
// second, and at least one.
func (h *handler) burst() float64 { return max(1, h.rate/10) }

// usable returns how many of n places the handler's limits allow it to use.
func (h *handler) room(n int, now time.Time) int {
	if h.limit > 0 {
		n = min(n, h.limit-h.taken)
	}
	if h.rate > 0 {
		h.fill(now, 0)
		n = min(n, int(h.tokens))
	}
	return max(n, 0)
}

// addTokens adds n tokens, and those for the time since the last call.
func (h *handler) fill(now time.Time, n int) {
	h.tokens = min(h.burst(), h.tokens+h.rate*now.Sub(h.filled).Seconds()+float64(n))
	h.filled = now
}

// unusedShare returns how many places of the handler's share are unused, and how many
// of these remain for new claims. If the handler has a backlog, the claims under way
// will fill all places that they request, so these do not remain.
func (p *places) lacks(h *handler) (lacks, remaining int) {
	lacks = max(0, (p.size*h.weight+p.weights-1)/p.weights-h.taken)
	if remaining = lacks; h.behind {
		remaining = max(0, lacks-h.asked)
	}
	return lacks, remaining
}

// usableLocked returns how many places a claim can use.
func (p *places) roomLocked(now time.Time) int {
	if p.over || p.alone || !p.limited || p.free == 0 {
		if p.over || p.alone {
			return 0
		}
		return p.free
	}
	n := 0
	for _, h := range p.handlers {
		n += h.room(p.free, now)
	}
	return min(n, p.free)
}

// reserve reserves up to limit places for a claim of the loop. offered says that the
// loop claims because of an offer. If what it waited for is no longer available then,
// reserve reserves none. A loop that gets none joins the queue, unless the Run is over.
func (p *places) take(l *loop, most int, called bool) grant {
	now := p.w.now()
	p.mu.Lock()
	defer p.unlock(now)
	p.free += l.reserved
	l.reserved = 0
	n := min(most, p.roomLocked(now))
	if called && !p.satisfiesLocked(l, now) {
		n = 0
	} else if n == 0 {
		l.wants.any = true
	}
	if n == 0 {
		p.joinLocked(l)
		return grant{full: true}
	}
	contended := l.wants.any && len(p.w.loops) > 1
	p.leaveLocked(l)
	p.free -= n
	g := grant{places: n, full: p.free == 0, suspects: store.OneSuspect}
	if p.suspect != nil {
		g.suspects = store.NoSuspect
	}
	g.fair = contended && now.Sub(l.fair) >= fairly && p.isUnfairLocked(n, now)
	if g.fair {
		l.fair = now
	}
	g.plain = true
	kept := false
	for _, h := range p.handlers {
		r := store.Room{Most: h.room(n, now)}
		lacks, remaining := p.lacks(h)
		if g.fair {
			r.Most = min(r.Most, remaining)
		}
		r.First = min(r.Most, max(remaining, min(lacks, 1)))
		g.plain = g.plain && r.First == n
		h.asked += r.First
		if h.isLimited() {
			h.taken += r.Most
			h.tokens -= float64(r.Most)
			kept = kept || h.room(1, now) == 0
		}
		g.rooms = append(g.rooms, r)
	}
	// If places are left, every handler gets what it needs: send no rooms.
	g.plain = g.plain || !p.limited && !g.fair && p.free > 0
	if kept && now.Sub(p.passed) >= time.Second {
		p.passed, g.pass = now, true
	}
	return g
}

// fairInterval is how often a loop that waited makes a fair claim: one that is only for
// handlers below their share of the places. Otherwise the loop might give every free
// place to other handlers in its own shard, while handlers below their share have due
// tasks in other shards.
const fairly = time.Second

// isUnfairLocked reports whether some handlers use their full share of the places, and
// others below their share could use more.
func (p *places) isUnfairLocked(n int, now time.Time) bool {
	over, under := false, false
	for _, h := range p.handlers {
		if _, remaining := p.lacks(h); remaining == 0 {
			over = true
		} else {
			under = under || h.room(n, now) > 0
		}
	}
	return over && under
}

// returnUnused returns the reserved places that a claim does not use. For each handler,
// got says how many tasks the claim got, and started how many of them run. running is
// the sum of started. reasons is what the loop now waits for.
func (p *places) settle(l *loop, g grant, got, run []int, running int, more wants) {
	if g.places == 0 {
		return
	}
	now := p.w.now()
	p.mu.Lock()
	defer p.unlock(now)
	p.addLocked(g.places - running)
	more.any = more.any || g.fair || l.wants.any // awaitPlace may have set it since the claim
	l.wants = more
	for i, h := range p.handlers {
		room := g.rooms[i].Most
		if first := g.rooms[i].First; first > 0 {
			h.asked -= first
			h.behind = got[i] >= first
		}
		if !h.isLimited() {
			h.taken += run[i]
			continue
		}
		h.taken -= room - run[i]
		h.fill(now, room-got[i])
		if room < g.places && got[i] == room {
			l.wants.handlers = append(l.wants.handlers, h)
		}
	}
	if l.wants.any || l.wants.suspect || l.wants.handlers != nil {
		p.joinLocked(l)
	}
}

// returnAll returns the reserved places of a claim that is not carried out.
func (p *places) giveBack(l *loop, g grant) {
	none := make([]int, len(p.handlers))
	p.settle(l, g, none, none, 0, wants{suspect: g.suspects == store.NoSuspect})
}

// release returns the place of an attempt. The caller must send the wakeups after
// unlocking.
func (p *places) release(a *attempt) calls {
	now := p.w.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addLocked(1)
	if a.handler != nil && !p.over { // after the Run, taken may belong to the next Run
		a.handler.taken--
	}
	p.clearLocked(a)
	return p.callsLocked(now)
}

func (p *places) addLocked(n int) {
	p.free += n
	if p.over && p.free == p.size {
		close(p.idle)
	}
}

// enqueueLocked appends a loop to the queue, unless the loop was offered a place and is
// about to claim.
func (p *places) joinLocked(l *loop) {
	if !l.inLine && l.reserved == 0 && !p.over {
		l.inLine = true
		p.waiting = append(p.waiting, l)
	}
}

func (p *places) leaveLocked(l *loop) {
	if i := slices.Index(p.waiting, l); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	l.inLine, l.wants = false, wants{}
	p.some.Broadcast()
}

// canClaimLocked reports whether something that the loop waits for is available.
func (p *places) satisfiesLocked(l *loop, now time.Time) bool {
	return l.wants.any || l.wants.suspect && p.suspect == nil ||
		slices.ContainsFunc(l.wants.handlers, func(h *handler) bool { return h.room(1, now) > 0 })
}

// wakeups says which loops to notify after the lock is released.
type calls struct {
	next  *loop    // gets an offer
	ready *attempt // may start when its lease is extended
}

func (c calls) make() {
	if c.next != nil {
		c.next.call()
	}
	if c.ready != nil {
		c.ready.loop.extendNow(c.ready.lease.ID)
	}
}

func (p *places) unlock(now time.Time) {
	c := p.callsLocked(now)
	p.mu.Unlock()
	c.make()
}

func (p *places) callsLocked(now time.Time) (c calls) {
	c.ready = p.readyLocked()
	if p.roomLocked(now) == 0 {
		p.refillLocked(now)
		return c
	}
	for i, l := range p.waiting {
		if p.satisfiesLocked(l, now) {
			p.waiting = slices.Delete(p.waiting, i, i+1)
			l.inLine = false
			// Reserve the place: the loop may still have a round under way, and other
			// loops must not take the place meanwhile.
			l.reserved = 1
			p.free--
			p.some.Broadcast()
			c.next = l
			return c
		}
	}
	p.refillLocked(now)
	return c
}

// setRefillLocked sets the timer for the next token of a handler, if a loop may wait
// for it.
func (p *places) refillLocked(now time.Time) {
	if len(p.waiting) == 0 || !p.limited {
		return
	}
	const none = time.Duration(1<<63 - 1)
	soonest := none
	for _, h := range p.handlers {
		if h.rate > 0 && h.tokens < 1 && h.room(1, now) == 0 {
			soonest = min(soonest, time.Duration((1-h.tokens)/h.rate*float64(time.Second))+1)
		}
	}
	if soonest < none && !p.refill.Move(soonest) {
		p.refill, _ = p.w.timers.Start(soonest, p.refilled)
	}
}

// onRefill runs when a handler gets a token. It offers a place to the first waiting
// loop that can claim.
func (p *places) refilled() {
	p.mu.Lock()
	c := p.callsLocked(p.w.now())
	p.mu.Unlock()
	c.make()
	if c.next != nil {
		c.next.ring()
	}
}

// awaitPlace returns when a place is free. If none is free now, the loop joins the
// queue, and awaitPlace waits for an offer or the end of the Run.
func (p *places) await(l *loop) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.roomLocked(p.w.now()) > 0 {
		return
	}
	l.wants.any = true
	p.joinLocked(l)
	for l.inLine && !p.over {
		p.some.Wait()
	}
}

// endRun stops all claims, because the Run is over.
func (p *places) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.over = true
	p.some.Broadcast()
	for _, l := range p.w.loops {
		p.free += l.reserved
		l.reserved = 0
	}
	p.addLocked(0)
}

func (p *places) takenNow() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size - p.free
}
