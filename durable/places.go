package durable

import (
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// places are a Worker's places for handlers, in one Run, and what each handler may have of
// them. A loop takes places before it claims tasks, and room for the handlers that have a
// limit, so that nothing is claimed that has to wait.
type places struct {
	w        *Worker
	handlers []*handler
	limited  bool // some of them have a limit
	weights  int  // their sum

	mu   sync.Mutex
	some sync.Cond // a loop is called, or it is over
	size int
	free int
	over bool
	// waiting are the loops that had no room for what may be due, each once at most, which is
	// what its inLine says.
	waiting []*loop
	refill  timer.Handle // of the rate that one of them waits for
	passed  time.Time    // when others were woken last for what a limit keeps from this Worker
	suspicion
	idle chan struct{} // closed when all places are free and it is over
}

// A use is what a handler has of the places. The fields are guarded by places.mu.
type use struct {
	index  int
	taken  int     // places, and of a handler with a limit those too that are being claimed for
	asked  int     // the shares that claims under way ask for
	behind bool    // the latest claim got all that it asked for
	tokens float64 // how many tasks may start
	filled time.Time
}

// wants is what a loop in line waits for.
type wants struct {
	any      bool // room for any handler
	suspect  bool // the end of the suspect
	handlers []*handler
}

// A grant is what a loop has taken for a claim.
type grant struct {
	places   int
	rooms    []store.Room // of the handlers
	plain    bool         // the claim cannot exceed any
	suspects store.Suspects
	full     bool // there is no place beyond it
	fair     bool // it is for those handlers that have less than their share
	pass     bool // others are to be woken for what a limit keeps from this Worker
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

// burst is how many tasks may start at once: what a tenth of a second has.
func (h *handler) burst() float64 { return max(1, h.rate/10) }

// room returns how many of n places the handler may have.
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

// fill adds the tokens that have come with time, and n.
func (h *handler) fill(now time.Time, n int) {
	h.tokens = min(h.burst(), h.tokens+h.rate*now.Sub(h.filled).Seconds()+float64(n))
	h.filled = now
}

// lacks is what the handler lacks of its share of the places, and left what claims under way
// leave of that: those of a handler that is behind get what they ask for.
func (p *places) lacks(h *handler) (lacks, left int) {
	lacks = max(0, (p.size*h.weight+p.weights-1)/p.weights-h.taken)
	if left = lacks; h.behind {
		left = max(0, lacks-h.asked)
	}
	return lacks, left
}

// roomLocked returns how many places a claim can use.
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

// take takes most places at most. A loop that was only called, and for what another one has
// taken before it came, takes none. One without places is called when there is room, unless
// it is over.
func (p *places) take(l *loop, most int, called bool) grant {
	now := p.w.now()
	p.mu.Lock()
	defer p.unlock(now)
	p.free += l.handed
	l.handed = 0
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
		lacks, left := p.lacks(h)
		if g.fair {
			r.Most = min(r.Most, left)
		}
		r.First = min(r.Most, max(left, min(lacks, 1)))
		g.plain = g.plain && r.First == n
		h.asked += r.First
		if h.isLimited() {
			h.taken += r.Most
			h.tokens -= float64(r.Most)
			kept = kept || h.room(1, now) == 0
		}
		g.rooms = append(g.rooms, r)
	}
	// Shares matter where places are scarce.
	g.plain = g.plain || !p.limited && !g.fair && p.free > 0
	if kept && now.Sub(p.passed) >= time.Second {
		p.passed, g.pass = now, true
	}
	return g
}

// fairly is how often a loop that has waited claims for those handlers alone that have less
// than their share: what is due for these in other shards comes before what is due in its own
// for the others.
const fairly = time.Second

// isUnfairLocked reports whether some handlers have their share of the places, and others do
// not.
func (p *places) isUnfairLocked(n int, now time.Time) bool {
	over, under := false, false
	for _, h := range p.handlers {
		if _, left := p.lacks(h); left == 0 {
			over = true
		} else {
			under = under || h.room(n, now) > 0
		}
	}
	return over && under
}

// settle gives back what a claim did not use. It got so many tasks of each handler, of so many
// the handlers run, and for more the loop waits.
func (p *places) settle(l *loop, g grant, got, run []int, running int, more wants) {
	if g.places == 0 {
		return
	}
	now := p.w.now()
	p.mu.Lock()
	defer p.unlock(now)
	p.addLocked(g.places - running)
	more.any = more.any || g.fair || l.wants.any // a wake-up has waited since the claim: see await
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

// giveBack gives back what a claim has taken that is not to be.
func (p *places) giveBack(l *loop, g grant) {
	none := make([]int, len(p.handlers))
	p.settle(l, g, none, none, 0, wants{suspect: g.suspects == store.NoSuspect})
}

// release gives back the place of an attempt. The caller makes the calls.
func (p *places) release(a *attempt) calls {
	now := p.w.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addLocked(1)
	if a.handler != nil && !p.over { // the next Run may have begun, with handlers' use of its own
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

// joinLocked puts a loop in line, unless it was called and is about to come.
func (p *places) joinLocked(l *loop) {
	if !l.inLine && l.handed == 0 && !p.over {
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

// satisfiesLocked reports whether there is what a loop waits for.
func (p *places) satisfiesLocked(l *loop, now time.Time) bool {
	return l.wants.any || l.wants.suspect && p.suspect == nil ||
		slices.ContainsFunc(l.wants.handlers, func(h *handler) bool { return h.room(1, now) > 0 })
}

// calls are whom to call after the lock was released.
type calls struct {
	next  *loop    // whose turn it is
	ready *attempt // which may begin
}

func (c calls) make() {
	if c.next != nil {
		c.next.call()
	}
	if c.ready != nil {
		c.ready.loop.extendNow(c.ready.hold.ID)
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
			// It may have a round under way, and others are not to pass it by meanwhile.
			l.handed = 1
			p.free--
			p.some.Broadcast()
			c.next = l
			return c
		}
	}
	p.refillLocked(now)
	return c
}

// refillLocked sets the timer for the next token of a handler, if a loop may wait for it.
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

// refilled calls the loop whose turn it is.
func (p *places) refilled() {
	p.mu.Lock()
	c := p.callsLocked(p.w.now())
	p.mu.Unlock()
	c.make()
	if c.next != nil {
		c.next.ring()
	}
}

// await puts a loop in line, if there is no room, and waits until it is called. It returns
// when it is over.
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

// end says that no more tasks are claimed.
func (p *places) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.over = true
	p.some.Broadcast()
	for _, l := range p.w.loops {
		p.free += l.handed
		l.handed = 0
	}
	p.addLocked(0)
}

func (p *places) takenNow() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size - p.free
}
