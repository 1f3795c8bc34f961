package durable

import (
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// A placePool manages the places of a Worker during one Run. Each running handler
// occupies one place. A loop reserves places before it claims tasks, so that a claimed
// task never waits for a place.
//
// If the Worker has several handlers, the last quarter of its places are spare: they are
// only for handlers that run nothing, one for each. So a slow handler leaves places for
// the others.
type placePool struct {
	w                 *Worker
	handlers          []*handler
	hasLimitedHandler bool // some handlers have a limit
	sparePlaces       int  // how many of totalPlaces are spare

	mu           sync.Mutex // guards the fields below, except idle
	queueChanged sync.Cond  // signalled when a loop leaves the queue or the Run is over
	totalPlaces  int        // how many places there are
	freePlaces   int        // how many of them are neither in use nor reserved; the spare ones are free last
	busyHandlers int        // handlers that run something
	runEnded     bool       // the Run is over
	// waitingLoops is the queue of loops that found no place for tasks that may be due.
	// A loop is in it at most once.
	waitingLoops []*shardLoop
	refillTimer  timer.Handle // fires when a handler gets a token for which a loop may wait
	wokeOthersAt time.Time    // when the store last woke other workers for tasks beyond this Worker's limits
	suspectState
	hangingHandlers int           // handlers that have not returned after their timeouts
	placesGiven     int           // how many of their places were given again: they count twice in totalPlaces
	idle            chan struct{} // closed when the Run is over and all places are free
	isIdle          bool          // idle is closed
}

// A placeUsage is a handler's use of the places, guarded by places.mu.
type placeUsage struct {
	handlerIndex    int       // in places.handlers
	placesTaken     int       // places in use
	placesReserved  int       // places reserved for claims, if the handler has a limit
	tokens          float64   // how many tasks the rate allows to start now
	tokensUpdatedAt time.Time // when tokens was last updated
}

// waitReasons says what a loop in the queue waits for. One of these things is enough.
type waitReasons struct {
	anyPlace bool       // a place that the loop's claim may use
	ordinary bool       // a place that is not spare
	idle     bool       // a free place: a handler has ended its only task
	suspects bool       // leave to run a suspect
	handlers []*handler // a place that one of these may use
}

// A placeGrant is what a loop has reserved for a claim, and the limits of that claim.
type placeGrant struct {
	placeCount       int          // how many places are reserved
	spare            int          // how many of them are spare
	rooms            []store.Room // the handlers that may not use all of them, or that are busy
	limitedRooms     []store.Room // the places reserved for handlers with a limit
	suspects         int          // how many suspects are reserved
	onlySuspect      bool         // the claim may get a last suspect
	allPlacesTaken   bool         // no place is free beside those of the grant
	wakeOtherWorkers bool         // the store wakes other workers for tasks beyond this Worker's limits
}

func newPlacePool(w *Worker) *placePool {
	p := &placePool{w: w, totalPlaces: w.config.concurrency, freePlaces: w.config.concurrency, idle: make(chan struct{}), suspectState: suspectState{suspectsAllowed: 1}}
	p.queueChanged.L = &p.mu
	for i, name := range w.handlerNames {
		h := w.handlers[name]
		h.placeUsage = placeUsage{handlerIndex: i, tokens: h.burstSize(), tokensUpdatedAt: w.now()}
		p.handlers = append(p.handlers, h)
		p.hasLimitedHandler = p.hasLimitedHandler || h.isLimited()
	}
	if len(p.handlers) > 1 {
		p.sparePlaces = p.totalPlaces / 4
	}
	return p
}

func (h *handler) isLimited() bool { return h.maxRunning > 0 || h.tasksPerSecond > 0 }

// burstSize returns how many tasks may start at the same time: what the rate allows in
// a tenth of a second, and at least one.
func (h *handler) burstSize() float64 { return max(1, h.tasksPerSecond/10) }

// usablePlaces returns how many of n places the handler's limits allow it to use.
func (h *handler) usablePlaces(n int, now time.Time) int {
	if h.maxRunning > 0 {
		n = min(n, h.maxRunning-h.placesTaken-h.placesReserved)
	}
	if h.tasksPerSecond > 0 {
		h.addTokens(now, 0)
		n = min(n, int(h.tokens))
	}
	return max(n, 0)
}

// addTokens adds n tokens, and what the rate allows for the time since the last call. A
// token lets one task start.
func (h *handler) addTokens(now time.Time, n int) {
	h.tokens = min(h.burstSize(), h.tokens+h.tasksPerSecond*now.Sub(h.tokensUpdatedAt).Seconds()+float64(n))
	h.tokensUpdatedAt = now
}

// usablePlacesLocked returns how many places a claim can use.
func (p *placePool) usablePlacesLocked(now time.Time) int {
	switch {
	case p.runEnded || p.freePlaces <= p.sparePlaces && p.busyHandlers == len(p.handlers):
		return 0
	case !p.hasLimitedHandler || p.freePlaces == 0:
		return p.freePlaces
	}
	n := 0
	for _, h := range p.handlers {
		n += h.usablePlaces(p.freePlaces, now)
	}
	return min(n, p.freePlaces)
}

// reservePlaces reserves up to maxPlaces places for a claim of the loop. A loop that
// gets no place joins the queue. isOffer says that the loop claims because of an offer.
// If the offer is outdated, the loop gets no place.
func (p *placePool) reservePlaces(l *shardLoop, maxPlaces int, isOffer bool) placeGrant {
	now := p.w.now()
	p.mu.Lock()
	defer p.unlockAndNotify(now)
	p.freePlaces += l.reservedPlaces
	l.reservedPlaces = 0
	n := min(maxPlaces, p.usablePlacesLocked(now))
	if isOffer && !p.canClaimLocked(l, now) {
		n = 0
	} else if n == 0 {
		l.waitReasons.anyPlace = true
	}
	if n == 0 {
		p.enqueueLocked(l)
		return placeGrant{allPlacesTaken: true}
	}
	p.dequeueLocked(l)
	g := placeGrant{placeCount: n, spare: min(n, max(0, n+p.sparePlaces-p.freePlaces))}
	p.freePlaces -= n
	g.allPlacesTaken = p.freePlaces == 0
	g.suspects, g.onlySuspect = p.reserveSuspectsLocked(l, n)
	limitReached := false
	for _, h := range p.handlers {
		r := store.Room{Handler: h.handlerIndex, Most: n, Busy: g.spare > 0 && h.placesTaken > 0}
		if h.isLimited() {
			r.Most = h.usablePlaces(n, now)
			h.placesReserved += r.Most
			h.tokens -= float64(r.Most)
			limitReached = limitReached || h.usablePlaces(1, now) == 0
			g.limitedRooms = append(g.limitedRooms, r)
		}
		if r.Most < n || r.Busy {
			g.rooms = append(g.rooms, r)
		}
	}
	if (limitReached || g.spare > 0) && now.Sub(p.wokeOthersAt) >= time.Second {
		p.wokeOthersAt, g.wakeOtherWorkers = now, true
	}
	return g
}

// freeUnusedPlaces is called after a claim. It frees those places reserved in g for which
// no task was started. claimedByHandler counts the tasks that the claim returned,
// startedByHandler those of them that run. startedTotal is the sum of startedByHandler.
// reasons says what the loop waits for now.
func (p *placePool) freeUnusedPlaces(l *shardLoop, g placeGrant, claimedByHandler, startedByHandler []int, startedTotal, startedSuspects int, waiting store.WaitingSuspects, reasons waitReasons) {
	if g.placeCount == 0 {
		return
	}
	now := p.w.now()
	p.mu.Lock()
	defer p.unlockAndNotify(now)
	p.addFreePlacesLocked(g.placeCount - startedTotal)
	p.keepSuspectsLocked(l, g.suspects, startedSuspects, waiting)
	reasons.anyPlace = reasons.anyPlace || l.waitReasons.anyPlace // awaitPlace may have set it since the claim
	claimedTotal := 0
	for i, h := range p.handlers {
		claimedTotal += claimedByHandler[i]
		p.addTakenLocked(h, startedByHandler[i])
		reasons.idle = reasons.idle || g.spare > 0 && claimedByHandler[i] > 0 && h.placesTaken <= 0
	}
	// If all ordinary places of the claim are used, more tasks may be due for them.
	reasons.ordinary = g.spare > 0 && claimedTotal >= g.placeCount-g.spare
	l.waitReasons = reasons
	for _, r := range g.limitedRooms {
		h, claimed := p.handlers[r.Handler], claimedByHandler[r.Handler]
		h.placesReserved -= r.Most
		h.addTokens(now, r.Most-claimed)
		if r.Most < g.placeCount && claimed == r.Most {
			l.waitReasons.handlers = append(l.waitReasons.handlers, h)
		}
	}
	if r := l.waitReasons; r.anyPlace || r.ordinary || r.suspects || r.handlers != nil {
		p.enqueueLocked(l)
	}
}

// freeAllPlaces frees the reserved places of a claim that is not carried out.
func (p *placePool) freeAllPlaces(l *shardLoop, g placeGrant) {
	zeroCounts := make([]int, len(p.handlers))
	p.freeUnusedPlaces(l, g, zeroCounts, zeroCounts, 0, 0, store.NoneWaits, waitReasons{})
}

// releasePlace frees the place of an attempt. The caller must send the wakeups after it
// has unlocked loop.mu.
func (p *placePool) releasePlace(a *attempt) wakeups {
	now := p.w.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.endHangLocked(a) {
		p.addFreePlacesLocked(1)
	} else {
		p.addFreePlacesLocked(0)
	}
	if a.handler != nil && !p.runEnded { // after the Run, placesTaken may belong to the next Run
		p.addTakenLocked(a.handler, -1)
		if a.handler.placesTaken == 0 {
			for _, l := range p.waitingLoops {
				l.waitReasons.idle = l.waitReasons.idle || l.waitReasons.ordinary
			}
		}
	}
	p.endSuspectLocked(a, true)
	return p.takeWakeupsLocked(now)
}

// addTakenLocked adds n to the places that a handler uses.
func (p *placePool) addTakenLocked(h *handler, n int) {
	wasBusy := h.placesTaken > 0
	h.placesTaken += n
	switch isBusy := h.placesTaken > 0; {
	case isBusy && !wasBusy:
		p.busyHandlers++
	case wasBusy && !isBusy:
		p.busyHandlers--
	}
}

func (p *placePool) addFreePlacesLocked(n int) {
	p.freePlaces += n
	if p.runEnded && p.freePlaces == p.totalPlaces && !p.isIdle {
		p.isIdle = true
		close(p.idle)
	}
}

// enqueueLocked appends a loop to the queue, unless the loop was offered a place and is
// about to claim.
func (p *placePool) enqueueLocked(l *shardLoop) {
	if !l.isQueued && l.reservedPlaces == 0 && !p.runEnded {
		l.isQueued = true
		p.waitingLoops = append(p.waitingLoops, l)
	}
}

func (p *placePool) dequeueLocked(l *shardLoop) {
	if i := slices.Index(p.waitingLoops, l); i >= 0 {
		p.waitingLoops = slices.Delete(p.waitingLoops, i, i+1)
	}
	l.isQueued, l.waitReasons = false, waitReasons{}
	l.timesDequeued++
	p.queueChanged.Broadcast()
}

// canClaimLocked reports whether something that the loop waits for is available.
func (p *placePool) canClaimLocked(l *shardLoop, now time.Time) bool {
	return l.waitReasons.anyPlace || l.waitReasons.idle || l.waitReasons.ordinary && p.freePlaces > p.sparePlaces || l.waitReasons.suspects && p.canClaimSuspectsLocked(l) ||
		slices.ContainsFunc(l.waitReasons.handlers, func(h *handler) bool { return h.usablePlaces(1, now) > 0 })
}

// wakeups says which loops to notify after the lock is released.
type wakeups struct {
	offeredLoop *shardLoop // gets an offer
}

func (c wakeups) send() {
	if c.offeredLoop != nil {
		c.offeredLoop.offerPlace()
	}
}

func (p *placePool) unlockAndNotify(now time.Time) {
	c := p.takeWakeupsLocked(now)
	p.mu.Unlock()
	c.send()
}

// takeWakeupsLocked returns the loops that the caller must notify. If a place is free, it
// reserves the place for the first of waitingLoops that can use it.
func (p *placePool) takeWakeupsLocked(now time.Time) (c wakeups) {
	if p.usablePlacesLocked(now) == 0 {
		p.setRefillTimerLocked(now)
		return c
	}
	for i, l := range p.waitingLoops {
		if p.canClaimLocked(l, now) {
			p.waitingLoops = slices.Delete(p.waitingLoops, i, i+1)
			l.isQueued = false
			l.timesDequeued++
			// Reserve the place: the loop may still have a round under way, and other
			// loops must not take the place meanwhile.
			l.reservedPlaces = 1
			p.freePlaces--
			p.queueChanged.Broadcast()
			c.offeredLoop = l
			return c
		}
	}
	p.setRefillTimerLocked(now)
	return c
}

// setRefillTimerLocked sets refillTimer to when a handler gets its next token, if a
// loop may wait for that.
func (p *placePool) setRefillTimerLocked(now time.Time) {
	if len(p.waitingLoops) == 0 || !p.hasLimitedHandler {
		return
	}
	const noRefill = time.Duration(1<<63 - 1)
	untilRefill := noRefill
	for _, h := range p.handlers {
		if h.tasksPerSecond > 0 && h.tokens < 1 && h.usablePlaces(1, now) == 0 {
			untilRefill = min(untilRefill, time.Duration((1-h.tokens)/h.tasksPerSecond*float64(time.Second))+1)
		}
	}
	if untilRefill < noRefill && !p.refillTimer.Move(untilRefill) {
		p.refillTimer, _ = p.w.timers.Start(untilRefill, p.onRefill)
	}
}

// onRefill runs when a handler gets a token. It offers a place to the first of
// waitingLoops that can use it.
func (p *placePool) onRefill() {
	p.mu.Lock()
	c := p.takeWakeupsLocked(p.w.now())
	p.mu.Unlock()
	c.send()
	if c.offeredLoop != nil {
		c.offeredLoop.onTimer()
	}
}

// awaitPlace waits until the loop can get a place, or the Run is over. Meanwhile the
// loop is in the queue.
//
// It returns false if it had to wait: the loop claims then with the place that it got.
func (p *placePool) awaitPlace(l *shardLoop) (isFree bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.usablePlacesLocked(p.w.now()) > 0 {
		return true
	}
	l.waitReasons.anyPlace = true
	p.enqueueLocked(l)
	// The loop may be in the queue again, for another reason, before this goroutine runs.
	for n := l.timesDequeued; l.isQueued && l.timesDequeued == n && !p.runEnded; {
		p.queueChanged.Wait()
	}
	return false
}

// endRun stops all claims, because the Run is over.
func (p *placePool) endRun() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runEnded {
		return
	}
	p.runEnded = true
	p.queueChanged.Broadcast()
	for _, l := range p.w.loops {
		p.freePlaces += l.reservedPlaces
		l.reservedPlaces = 0
	}
	p.addFreePlacesLocked(0)
}

// placesInUse returns how many places are in use, and how many of them by handlers that
// hang.
func (p *placePool) placesInUse() (n, hanging int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.totalPlaces - p.freePlaces, p.hangingHandlers
}
