package alarm

import "time"

// soon is now by a clock of the test's, of which the real one stays short: what is set
// for then does not ring by itself.
func (h *hub) soon() int64 { return h.now() + int64(time.Hour) }

// setAt sets the alarm for very soon, and reports whether exactly.
func (m *member) setAt(now int64) bool {
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	m.h.moveLocked(m, now+1)
	m.h.armLocked(now)
	return m.h.exact
}

func (m *member) ring(now int64) {
	m.h.mu.Lock()
	m.h.moveLocked(m, now)
	m.h.ringLocked(now).call()
}
