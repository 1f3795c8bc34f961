package places

import (
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// A Pool has the places of a Worker during one Run.
type Pool struct {
	now        func() time.Time
	timers     *timer.Scheduler
	hasLimited bool // some handlers have a limit
	spare      int  // how many places are spare
	idle       chan struct{}

	mu           sync.Mutex // guards the fields below, and those of Claimers and Places
	handlers     []usage
	claimers     []*Claimer
	queue        []*Claimer   // those that found no place for tasks that may be due, each once
	total        int          // how many places there are; one that was given again counts twice
	free         int          // how many of them are neither in use nor reserved; the spare ones are free last
	busyHandlers int          // handlers that run something
	ended        bool         // the Run is over
	isIdle       bool         // idle is closed
	refillTimer  timer.Handle // fires when a handler gets a token for which a claimer may wait
	wokeOthersAt time.Time    // when the store last woke other workers for tasks beyond this Worker's limits
	suspects     suspects
	hanging      int // handlers that have not returned after their timeouts
	given        int // how many of their places were given again
}

// Spare returns how many of n places are spare in a Worker with a number of handlers.
func Spare(n, handlers int) int {
	if handlers > 1 {
		return n / 4
	}
	return 0
}

// New returns a Pool of n places for handlers with limits. Handlers are known by their indexes
// in limits.
func New(n int, limits []Limit, now func() time.Time, timers *timer.Scheduler) *Pool {
	p := &Pool{now: now, timers: timers, spare: Spare(n, len(limits)), idle: make(chan struct{}), total: n, free: n, suspects: suspects{allowed: 1}}
	for _, l := range limits {
		h := usage{Limit: l, tokens: l.burst(), tokensUpdatedAt: now()}
		p.handlers = append(p.handlers, h)
		p.hasLimited = p.hasLimited || h.isLimited()
	}
	return p
}

// A Claimer claims tasks for places. Its fields are guarded by Pool.mu.
type Claimer struct {
	offer, refill func()
	waits         waitReasons
	reserved      int           // 1 if a place is reserved for it, otherwise 0
	left          chan struct{} // closed when it leaves the queue; nil unless Await waits for that
}

// NewClaimer adds a claimer. The Pool calls offer when a place is reserved for the claimer: it
// must then call Reserve. refill is called after offer if a rate allows more tasks now.
func (p *Pool) NewClaimer(offer, refill func()) *Claimer {
	c := &Claimer{offer: offer, refill: refill}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claimers = append(p.claimers, c)
	return c
}

// waitReasons says what a claimer in the queue waits for. One of these things is enough. Settle
// sets the reasons by what the claim got, Reserve and Await set anyPlace, Release sets idle, and
// canClaimLocked says whether the wait is over.
type waitReasons struct {
	anyPlace bool     // any place: the claim got none, or more tasks are due than it got
	ordinary bool     // a place that is not spare: the claim used all such places that it had
	idle     bool     // a free place, spare or not: a handler has ended its only task since the claim
	suspects bool     // leave to run a suspect: the store has some
	handlers []*usage // a place that one of these may use: the claim used all that their limits allowed
}

// A Grant is what a claimer has reserved for a claim. Claim has Max, the number of places, and
// the limits of the claim.
type Grant struct {
	Claim   store.Claim
	MoreDue bool                  // set by the claimer: more tasks are due than the claim got
	Waiting store.WaitingSuspects // set by the claimer: what the store says of suspects

	limited         []store.Room // the places reserved for handlers with a limit
	got             []count      // by handler
	started         int          // tasks that run, of all handlers
	startedSuspects int          // suspects that run
}

type count struct{ claimed, started int }

// Count counts a claimed task. isStarted says that it runs. The handler is -1 if it is
// unknown.
func (g *Grant) Count(handler int, isStarted, isSuspect bool) {
	n := 0
	if isStarted {
		n = 1
	}
	g.started += n
	if isSuspect {
		g.startedSuspects += n
	}
	if handler >= 0 && g.got != nil {
		g.got[handler].claimed++
		g.got[handler].started += n
	}
}

// usableLocked returns how many places a claim can use.
func (p *Pool) usableLocked(now time.Time) int {
	switch {
	case p.ended || p.free <= p.spare && p.busyHandlers == len(p.handlers):
		return 0
	case !p.hasLimited || p.free == 0:
		return p.free
	}
	n := 0
	for i := range p.handlers {
		n += p.handlers[i].usablePlaces(p.free, now)
	}
	return min(n, p.free)
}

// Reserve reserves up to most places for a claim. A claimer that gets no place joins the
// queue. isOffer says that it claims because of an offer. If the offer is outdated, it gets no
// place.
func (p *Pool) Reserve(c *Claimer, most int, isOffer bool) Grant {
	now := p.now()
	p.mu.Lock()
	defer p.unlockAndOffer(now)
	p.free += c.reserved
	c.reserved = 0
	n := min(most, p.usableLocked(now))
	if isOffer && !p.canClaimLocked(c, now) {
		n = 0
	} else if n == 0 {
		c.waits.anyPlace = true
	}
	if n == 0 {
		p.enqueueLocked(c)
		return Grant{Claim: store.Claim{Full: true}}
	}
	p.dequeueLocked(c)
	c.waits = waitReasons{}
	spare := min(n, max(0, n+p.spare-p.free))
	p.free -= n
	g := Grant{Claim: store.Claim{Max: n, Spare: spare, Full: p.free == 0}, got: make([]count, len(p.handlers))}
	g.Claim.Suspects, g.Claim.OnlySuspect = p.suspects.reserve(c, n)
	limitReached := false
	for i := range p.handlers {
		h := &p.handlers[i]
		r := store.Room{Handler: i, Most: n, Busy: spare > 0 && h.taken > 0}
		if h.isLimited() {
			r.Most = h.usablePlaces(n, now)
			h.reserved += r.Most
			h.tokens -= float64(r.Most)
			limitReached = limitReached || h.usablePlaces(1, now) == 0
			g.limited = append(g.limited, r)
		}
		if r.Most < n || r.Busy {
			g.Claim.Rooms = append(g.Claim.Rooms, r)
		}
	}
	if (limitReached || spare > 0) && now.Sub(p.wokeOthersAt) >= time.Second {
		p.wokeOthersAt, g.Claim.Pass = now, true
	}
	return g
}

// Settle is called after a claim, or instead of it. It frees those places reserved in g for
// which no task was started. The claimer stays in the queue if it waits for something.
func (p *Pool) Settle(c *Claimer, g *Grant) {
	if g.Claim.Max == 0 {
		return
	}
	now := p.now()
	p.mu.Lock()
	defer p.unlockAndOffer(now)
	p.addFreeLocked(g.Claim.Max - g.started)
	p.suspects.settle(c, g.Claim.Suspects-g.startedSuspects, g.Waiting)
	w := waitReasons{anyPlace: g.MoreDue || c.waits.anyPlace, suspects: g.Waiting != store.NoneWaits} // Await may have set anyPlace since the claim
	claimed := 0
	for i, got := range g.got {
		claimed += got.claimed
		p.addTakenLocked(&p.handlers[i], got.started)
		w.idle = w.idle || g.Claim.Spare > 0 && got.claimed > 0 && p.handlers[i].taken <= 0
	}
	// If all ordinary places of the claim are used, more tasks may be due for them.
	w.ordinary = g.Claim.Spare > 0 && claimed >= g.Claim.Max-g.Claim.Spare
	for _, r := range g.limited {
		h, claimed := &p.handlers[r.Handler], g.got[r.Handler].claimed
		h.reserved -= r.Most
		h.addTokens(now, r.Most-claimed)
		if r.Most < g.Claim.Max && claimed == r.Most {
			w.handlers = append(w.handlers, h)
		}
	}
	if c.waits = w; w.anyPlace || w.ordinary || w.suspects || w.handlers != nil {
		p.enqueueLocked(c)
	}
}

// A Place is what an attempt occupies from its start until its handler returns. Its fields are
// guarded by Pool.mu, except the first two.
type Place struct {
	pool    *Pool
	handler int // its index, or -1

	isSuspect     bool // the attempt is one of suspects.reserved
	isLastSuspect bool
	returned      bool // the handler has returned
	hangs         bool
	givenAgain    bool
	timers        [2]timer.Handle // for a handler that hangs
}

// NewPlace returns a place for an attempt of a handler, or of none if it is -1. The attempt
// occupies it only after [Pool.Settle].
func (p *Pool) NewPlace(handler int) Place { return Place{pool: p, handler: handler} }

// Release frees the place at the end of the attempt. hasRun says that the handler was called, and
// has returned. The caller must offer a place to the Claimer, after it has released its locks.
func (x *Place) Release(hasRun bool) *Claimer {
	p, now := x.pool, x.pool.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	x.endHangLocked()
	if x.handler >= 0 {
		h := &p.handlers[x.handler]
		p.addTakenLocked(h, -1)
		if h.taken == 0 {
			for _, c := range p.queue {
				c.waits.idle = c.waits.idle || c.waits.ordinary
			}
		}
	}
	if x.endSuspectLocked() && hasRun {
		p.suspects.allowed = min(p.suspects.allowed+1, p.total)
	}
	return p.nextLocked(now)
}

// addTakenLocked adds n to the places that a handler uses.
func (p *Pool) addTakenLocked(h *usage, n int) {
	wasBusy := h.taken > 0
	h.taken += n
	switch isBusy := h.taken > 0; {
	case isBusy && !wasBusy:
		p.busyHandlers++
	case wasBusy && !isBusy:
		p.busyHandlers--
	}
}

func (p *Pool) addFreeLocked(n int) {
	p.free += n
	if p.ended && p.free == p.total && !p.isIdle {
		p.isIdle = true
		close(p.idle)
	}
}

// enqueueLocked appends a claimer to the queue, unless it is there, or was offered a place and is
// about to claim.
func (p *Pool) enqueueLocked(c *Claimer) {
	if c.reserved == 0 && !p.ended && !slices.Contains(p.queue, c) {
		p.queue = append(p.queue, c)
	}
}

// dequeueLocked removes a claimer from the queue, if it is there.
func (p *Pool) dequeueLocked(c *Claimer) {
	if i := slices.Index(p.queue, c); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	if c.left != nil {
		close(c.left)
		c.left = nil
	}
}

// canClaimLocked reports whether something that the claimer waits for is available.
func (p *Pool) canClaimLocked(c *Claimer, now time.Time) bool {
	w := &c.waits
	return w.anyPlace || w.idle || w.ordinary && p.free > p.spare || w.suspects && p.suspects.canClaim(c) ||
		slices.ContainsFunc(w.handlers, func(h *usage) bool { return h.usablePlaces(1, now) > 0 })
}

// Offer tells the claimer that a place is reserved for it. It does nothing if c is nil.
func (c *Claimer) Offer() {
	if c != nil {
		c.offer()
	}
}

func (p *Pool) unlockAndOffer(now time.Time) {
	c := p.nextLocked(now)
	p.mu.Unlock()
	c.Offer()
}

// nextLocked returns the claimer to which the caller must offer a place, after it has released
// the lock: the first in the queue that can use a free place, which is now reserved. Otherwise it
// returns nil.
func (p *Pool) nextLocked(now time.Time) *Claimer {
	if p.usableLocked(now) > 0 {
		for _, c := range p.queue {
			if p.canClaimLocked(c, now) {
				p.dequeueLocked(c)
				// Reserve the place: the claimer may still wait for an answer, and others must
				// not take the place meanwhile.
				c.reserved = 1
				p.free--
				return c
			}
		}
	}
	p.setRefillTimerLocked(now)
	return nil
}

// setRefillTimerLocked sets refillTimer to when a handler gets its next token, if a claimer
// may wait for that.
func (p *Pool) setRefillTimerLocked(now time.Time) {
	if len(p.queue) == 0 || !p.hasLimited {
		return
	}
	const noRefill = time.Duration(1<<63 - 1)
	untilRefill := noRefill
	for i := range p.handlers {
		h := &p.handlers[i]
		if h.Rate > 0 && h.tokens < 1 && h.usablePlaces(1, now) == 0 {
			untilRefill = min(untilRefill, time.Duration((1-h.tokens)/h.Rate*float64(time.Second))+1)
		}
	}
	if untilRefill < noRefill && !p.refillTimer.Move(untilRefill) {
		p.refillTimer, _ = p.timers.Start(untilRefill, p.onRefill)
	}
}

// onRefill runs when a handler gets a token.
func (p *Pool) onRefill() {
	p.mu.Lock()
	c := p.nextLocked(p.now())
	p.mu.Unlock()
	if c != nil {
		c.offer()
		c.refill()
	}
}

// Await waits until the claimer can get a place, or the Run is over. Meanwhile the claimer is
// in the queue.
//
// It returns false if it had to wait: the claimer claims then with the place that it got.
func (p *Pool) Await(c *Claimer) (isFree bool) {
	p.mu.Lock()
	if p.usableLocked(p.now()) > 0 {
		p.mu.Unlock()
		return true
	}
	c.waits.anyPlace = true
	p.enqueueLocked(c)
	left := c.left
	if left == nil && slices.Contains(p.queue, c) {
		left = make(chan struct{})
		c.left = left
	}
	p.mu.Unlock()
	if left != nil {
		<-left
	}
	return false
}

// End stops all claims, because the Run is over. It returns a channel that is closed when all
// places are free.
func (p *Pool) End() (idle <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, c := range p.claimers {
		p.dequeueLocked(c)
		p.free += c.reserved
		c.reserved = 0
	}
	p.addFreeLocked(0)
	return p.idle
}

// InUse returns how many places are in use or reserved, and how many of them by handlers that
// hang.
func (p *Pool) InUse() (n, hanging int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total - p.free, p.hanging
}
