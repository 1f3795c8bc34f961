package durable

import (
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// places manages the places of a Worker during one Run. Each running handler occupies
// one. A loop reserves places before it claims tasks, so that a claimed task never
// waits for a place.
type places struct {
	w           *Worker
	handlers    []*handler
	anyLimited  bool // some handlers have a limit
	totalWeight int  // of all handlers

	mu           sync.Mutex
	queueChanged sync.Cond // signalled when a loop leaves the queue or the Run is over
	size         int       // how many places there are
	free         int       // how many of them are neither in use nor reserved
	runOver      bool      // the Run is over
	// waiting is the queue of loops that found no place for tasks that may be due. A
	// loop is in it at most once.
	waiting      []*loop
	refillTimer  timer.Handle // fires when a handler gets a token for which a loop may wait
	wokeOthersAt time.Time    // when the store last woke others for tasks beyond this Worker's limits
	suspectState
	idle chan struct{} // closed when the Run is over and all places are free
}

// A usage is a handler's use of the places, guarded by places.mu.
type usage struct {
	index      int       // in places.handlers
	taken      int       // places in use; with a limit, also those reserved for claims
	requested  int       // places of its share that claims under way request
	hasBacklog bool      // the latest claim got all tasks that it requested
	tokens     float64   // how many tasks the rate allows to start now
	filledAt   time.Time // when tokens was last updated
}

// waitReasons says what a loop in the queue waits for. One of these things is enough.
type waitReasons struct {
	anyHandler bool       // a place that any handler may use
	suspectEnd bool       // the end of the present suspect
	handlers   []*handler // a place that one of these may use
}

// A grant is what a loop has reserved for a claim, and the limits of that claim.
type grant struct {
	places     int            // how many places are reserved
	rooms      []store.Room   // the claim's limits for each handler
	omitRooms  bool           // rooms are not sent, because the claim cannot exceed them
	suspects   store.Suspects // how many suspects the claim may get
	allTaken   bool           // no place is free beside those of the grant
	fair       bool           // the claim is only for handlers below their share
	wakeOthers bool           // the store wakes other workers for tasks beyond this Worker's limits
}

func newPlaces(w *Worker) *places {
	p := &places{w: w, size: w.config.concurrency, free: w.config.concurrency, idle: make(chan struct{})}
	p.queueChanged.L = &p.mu
	for i, name := range w.handlerNames {
		h := w.handlers[name]
		h.usage = usage{index: i, tokens: h.burst(), filledAt: w.now()}
		p.handlers = append(p.handlers, h)
		p.anyLimited = p.anyLimited || h.isLimited()
		p.totalWeight += h.weight
	}
	return p
}

func (h *handler) isLimited() bool { return h.maxRunning > 0 || h.rate > 0 }

// burst returns how many tasks may start at the same time: what the rate allows in a
// tenth of a second, and at least one.
func (h *handler) burst() float64 { return max(1, h.rate/10) }

// usablePlaces returns how many of n places the handler's limits allow it to use.
func (h *handler) usablePlaces(n int, now time.Time) int {
	if h.maxRunning > 0 {
		n = min(n, h.maxRunning-h.taken)
	}
	if h.rate > 0 {
		h.addTokens(now, 0)
		n = min(n, int(h.tokens))
	}
	return max(n, 0)
}

// addTokens adds n tokens, and what the rate allows for the time since the last call. A
// token lets one task start.
func (h *handler) addTokens(now time.Time, n int) {
	h.tokens = min(h.burst(), h.tokens+h.rate*now.Sub(h.filledAt).Seconds()+float64(n))
	h.filledAt = now
}

// unusedShare returns how many places of its share the handler does not use. If the
// handler has a backlog, remaining leaves out the places that claims under way request,
// because they will probably fill them.
func (p *places) unusedShare(h *handler) (unused, remaining int) {
	unused = max(0, (p.size*h.weight+p.totalWeight-1)/p.totalWeight-h.taken)
	if remaining = unused; h.hasBacklog {
		remaining = max(0, unused-h.requested)
	}
	return unused, remaining
}

// usablePlacesLocked returns how many places a claim can use.
func (p *places) usablePlacesLocked(now time.Time) int {
	if p.runOver || p.mustBeAlone || !p.anyLimited || p.free == 0 {
		if p.runOver || p.mustBeAlone {
			return 0
		}
		return p.free
	}
	n := 0
	for _, h := range p.handlers {
		n += h.usablePlaces(p.free, now)
	}
	return min(n, p.free)
}

// reserve reserves up to limit places for a claim of the loop. A loop that gets no
// place joins the queue. If offered is true and the offer is outdated, the loop gets no
// place.
func (p *places) reserve(l *loop, limit int, offered bool) grant {
	now := p.w.now()
	p.mu.Lock()
	defer p.unlockAndNotify(now)
	p.free += l.reserved
	l.reserved = 0
	n := min(limit, p.usablePlacesLocked(now))
	if offered && !p.canClaimLocked(l, now) {
		n = 0
	} else if n == 0 {
		l.waitsFor.anyHandler = true
	}
	if n == 0 {
		p.enqueueLocked(l)
		return grant{allTaken: true}
	}
	hadToWait := l.waitsFor.anyHandler && len(p.w.loops) > 1
	p.dequeueLocked(l)
	p.free -= n
	g := grant{places: n, allTaken: p.free == 0, suspects: store.OneSuspect}
	if p.suspect != nil {
		g.suspects = store.NoSuspect
	}
	g.fair = hadToWait && now.Sub(l.lastFairClaim) >= fairInterval && p.isUnfairLocked(n, now)
	if g.fair {
		l.lastFairClaim = now
	}
	g.omitRooms = true
	limitReached := false
	for _, h := range p.handlers {
		r := store.Room{Most: h.usablePlaces(n, now)}
		unused, remaining := p.unusedShare(h)
		if g.fair {
			r.Most = min(r.Most, remaining)
		}
		r.First = min(r.Most, max(remaining, min(unused, 1)))
		g.omitRooms = g.omitRooms && r.First == n
		h.requested += r.First
		if h.isLimited() {
			h.taken += r.Most
			h.tokens -= float64(r.Most)
			limitReached = limitReached || h.usablePlaces(1, now) == 0
		}
		g.rooms = append(g.rooms, r)
	}
	// If places stay free, every handler gets enough: the claim needs no rooms (limits
	// for handlers).
	g.omitRooms = g.omitRooms || !p.anyLimited && !g.fair && p.free > 0
	if limitReached && now.Sub(p.wokeOthersAt) >= time.Second {
		p.wokeOthersAt, g.wakeOthers = now, true
	}
	return g
}

// fairInterval is how often a loop that had to wait for a place makes a fair claim: a
// claim only for handlers below their share. Without such claims, a busy handler could
// take every free place, while tasks of other handlers wait in other shards.
const fairInterval = time.Second

// isUnfairLocked reports whether some handlers use their full share of the places, and
// others below their share could use more.
func (p *places) isUnfairLocked(n int, now time.Time) bool {
	someFull, someBelow := false, false
	for _, h := range p.handlers {
		if _, remaining := p.unusedShare(h); remaining == 0 {
			someFull = true
		} else {
			someBelow = someBelow || h.usablePlaces(n, now) > 0
		}
	}
	return someFull && someBelow
}

// returnUnused returns the places of a grant that its claim does not use. got and
// started count the claimed and the started tasks of each handler. running is the sum
// of started. reasons says what the loop waits for now.
func (p *places) returnUnused(l *loop, g grant, got, started []int, running int, reasons waitReasons) {
	if g.places == 0 {
		return
	}
	now := p.w.now()
	p.mu.Lock()
	defer p.unlockAndNotify(now)
	p.addFreeLocked(g.places - running)
	reasons.anyHandler = reasons.anyHandler || g.fair || l.waitsFor.anyHandler // awaitPlace may have set it since the claim
	l.waitsFor = reasons
	for i, h := range p.handlers {
		limit := g.rooms[i].Most
		if first := g.rooms[i].First; first > 0 {
			h.requested -= first
			h.hasBacklog = got[i] >= first
		}
		if !h.isLimited() {
			h.taken += started[i]
			continue
		}
		h.taken -= limit - started[i]
		h.addTokens(now, limit-got[i])
		if limit < g.places && got[i] == limit {
			l.waitsFor.handlers = append(l.waitsFor.handlers, h)
		}
	}
	if l.waitsFor.anyHandler || l.waitsFor.suspectEnd || l.waitsFor.handlers != nil {
		p.enqueueLocked(l)
	}
}

// returnAll returns the reserved places of a claim that is not carried out.
func (p *places) returnAll(l *loop, g grant) {
	zeros := make([]int, len(p.handlers))
	p.returnUnused(l, g, zeros, zeros, 0, waitReasons{suspectEnd: g.suspects == store.NoSuspect})
}

// release returns the place of an attempt. The caller must send the wakeups after
// unlocking.
func (p *places) release(a *attempt) wakeups {
	now := p.w.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addFreeLocked(1)
	if a.handler != nil && !p.runOver { // after the Run, taken may belong to the next Run
		a.handler.taken--
	}
	p.forgetLocked(a)
	return p.wakeupsLocked(now)
}

func (p *places) addFreeLocked(n int) {
	p.free += n
	if p.runOver && p.free == p.size {
		close(p.idle)
	}
}

// enqueueLocked appends a loop to the queue, unless the loop was offered a place and is
// about to claim.
func (p *places) enqueueLocked(l *loop) {
	if !l.queued && l.reserved == 0 && !p.runOver {
		l.queued = true
		p.waiting = append(p.waiting, l)
	}
}

func (p *places) dequeueLocked(l *loop) {
	if i := slices.Index(p.waiting, l); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	l.queued, l.waitsFor = false, waitReasons{}
	p.queueChanged.Broadcast()
}

// canClaimLocked reports whether something that the loop waits for is available.
func (p *places) canClaimLocked(l *loop, now time.Time) bool {
	return l.waitsFor.anyHandler || l.waitsFor.suspectEnd && p.suspect == nil ||
		slices.ContainsFunc(l.waitsFor.handlers, func(h *handler) bool { return h.usablePlaces(1, now) > 0 })
}

// wakeups says which loops to notify after the lock is released.
type wakeups struct {
	offerTo      *loop    // gets an offer
	readySuspect *attempt // may start when its lease is extended
}

func (c wakeups) send() {
	if c.offerTo != nil {
		c.offerTo.offer()
	}
	if c.readySuspect != nil {
		c.readySuspect.loop.extendNow(c.readySuspect.lease.ID)
	}
}

func (p *places) unlockAndNotify(now time.Time) {
	c := p.wakeupsLocked(now)
	p.mu.Unlock()
	c.send()
}

func (p *places) wakeupsLocked(now time.Time) (c wakeups) {
	c.readySuspect = p.readyLocked()
	if p.usablePlacesLocked(now) == 0 {
		p.setRefillLocked(now)
		return c
	}
	for i, l := range p.waiting {
		if p.canClaimLocked(l, now) {
			p.waiting = slices.Delete(p.waiting, i, i+1)
			l.queued = false
			// Reserve the place: the loop may still have a round under way, and other
			// loops must not take the place meanwhile.
			l.reserved = 1
			p.free--
			p.queueChanged.Broadcast()
			c.offerTo = l
			return c
		}
	}
	p.setRefillLocked(now)
	return c
}

// setRefillLocked sets refillTimer to when a handler gets its next token, if a loop may
// wait for that.
func (p *places) setRefillLocked(now time.Time) {
	if len(p.waiting) == 0 || !p.anyLimited {
		return
	}
	const none = time.Duration(1<<63 - 1)
	soonest := none
	for _, h := range p.handlers {
		if h.rate > 0 && h.tokens < 1 && h.usablePlaces(1, now) == 0 {
			soonest = min(soonest, time.Duration((1-h.tokens)/h.rate*float64(time.Second))+1)
		}
	}
	if soonest < none && !p.refillTimer.Move(soonest) {
		p.refillTimer, _ = p.w.timers.Start(soonest, p.onRefill)
	}
}

// onRefill runs when a handler gets a token. It offers a place to the first waiting
// loop that can claim.
func (p *places) onRefill() {
	p.mu.Lock()
	c := p.wakeupsLocked(p.w.now())
	p.mu.Unlock()
	c.send()
	if c.offerTo != nil {
		c.offerTo.onTimer()
	}
}

// awaitPlace waits until the loop can get a place, or the Run is over. Meanwhile the
// loop is in the queue.
func (p *places) awaitPlace(l *loop) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.usablePlacesLocked(p.w.now()) > 0 {
		return
	}
	l.waitsFor.anyHandler = true
	p.enqueueLocked(l)
	for l.queued && !p.runOver {
		p.queueChanged.Wait()
	}
}

// endRun stops all claims, because the Run is over.
func (p *places) endRun() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runOver {
		return
	}
	p.runOver = true
	p.queueChanged.Broadcast()
	for _, l := range p.w.loops {
		p.free += l.reserved
		l.reserved = 0
	}
	p.addFreeLocked(0)
}

func (p *places) placesInUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size - p.free
}
