package alarm

import (
	"cmp"
	"slices"
	"time"

	"github.com/tickless/tickless/internal/bubble"
)

// A member is an alarm of a hub's, whose lock guards when and closed.
type member struct {
	h *hub
	f func()

	when   int64 // the moment that the alarm is set for, while it is among the hub's
	closed bool
}

func (m *member) Reset(d time.Duration) {
	now := time.Now()
	if !bubble.Monotonic(now) {
		return // in a bubble nobody knows the time, and no timer can be set
	}
	h := m.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.closed {
		return
	}
	h.set.remove(m)
	m.when = after(h.at(now), d)
	h.set.add(m)
	h.settleLocked(now)
}

func (m *member) Stop() {
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	m.stopLocked()
}

func (m *member) Close() {
	m.h.mu.Lock()
	m.closed = true
	m.stopLocked()
	var file closer
	if len(m.h.set) == 0 && !bubble.Inside() {
		file = m.h.takeLocked()
		m.h.armLocked(m.h.now())
	}
	m.h.mu.Unlock()
	file.close()
}

func (m *member) stopLocked() {
	if m.h.set.remove(m) {
		m.h.settleLocked(time.Now())
	}
}

// A members is those that are set, the first to ring first.
type members []*member

func (s *members) add(m *member) {
	at, _ := slices.BinarySearchFunc(*s, m.when, func(m *member, when int64) int { return cmp.Compare(m.when, when) })
	*s = slices.Insert(*s, at, m)
}

// remove reports whether m was set.
func (s *members) remove(m *member) bool {
	at := slices.Index(*s, m)
	if at >= 0 {
		*s = slices.Delete(*s, at, at+1)
	}
	return at >= 0
}

// first returns the moment of the member that rings first, never if none is set.
func (s members) first() int64 {
	if len(s) == 0 {
		return never
	}
	return s[0].when
}
