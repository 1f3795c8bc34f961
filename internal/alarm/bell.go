package alarm

import (
	"math"
	"time"
)

// A bell is one of a hub's timers of package time, with an account of the goroutines that
// it has started: who closes an alarm waits for those. The hub's lock guards it.
type bell struct {
	h *hub
	t *time.Timer
	// set: the timer is set, or has started a goroutine that is yet to begin.
	set bool
	// overtaken counts the goroutines that are yet to begin although the timer was stopped,
	// or set again, after it had started them. Any of them may be the one that begins next.
	overtaken int
}

// newBell returns a bell that calls f, on a goroutine of its own. It is not set.
func newBell(h *hub, f func()) *bell {
	b := &bell{h: h, t: time.AfterFunc(math.MaxInt64, f)}
	b.t.Stop()
	return b
}

// reset sets the bell for after d.
func (b *bell) reset(d time.Duration) {
	if !b.t.Reset(d) {
		b.passLocked()
	}
	b.set = true
}

// stop unsets the bell.
func (b *bell) stop() {
	if !b.t.Stop() {
		b.passLocked()
	}
	b.set = false
}

// passLocked notes that the timer has started a goroutine, if it was set.
func (b *bell) passLocked() {
	if b.set {
		b.overtaken++
		b.h.running++
	}
}

// beginLocked is called by a goroutine that the timer has started, which calls
// endLocked later.
func (b *bell) beginLocked() {
	if b.overtaken > 0 {
		b.overtaken--
		return
	}
	b.set = false
	b.h.running++
}

// endLocked is called by a goroutine of the hub's that is about to end, or to call a
// member's function.
func (h *hub) endLocked() {
	h.running--
	h.ended++
	for len(h.closers) > 0 && h.closers[0].until <= h.ended {
		h.closers[0].m.leaveLocked()
		h.closers = h.closers[1:]
	}
	if len(h.closers) == 0 {
		h.closers = nil
	}
}

// A closer is a member whose closing waits until so many of the hub's goroutines have ended.
type closer struct {
	m     *member
	until uint64
}

// awaitLocked has the closing of m wait for as many of the hub's goroutines, but for those
// that call functions, as are under way. If m was the last that was set, these are they, and
// none is left. If not, some of them may be of others' rings that came later: where those
// are many there may be no moment without any.
func (h *hub) awaitLocked(m *member) {
	if h.running > 0 {
		h.closers = append(h.closers, closer{m, h.ended + uint64(h.running)})
		m.left++
	}
}

// closeFile closes a descriptor that was taken, on a goroutine that was counted.
func (h *hub) closeFile(file interface{ Close() error }) {
	file.Close()
	h.mu.Lock()
	h.endLocked()
	h.mu.Unlock()
}
