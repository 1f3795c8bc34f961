package durable

import (
	"slices"
	"sync"
)

// slots are a Worker's places for handlers, in one Run. A loop takes places before it claims
// tasks, so that nothing is claimed that has to wait.
type slots struct {
	mu   sync.Mutex
	some sync.Cond // there are places, or it is over
	size int
	free int
	over bool
	// waiting are the loops that found no place although tasks of theirs were due.
	// Each is here once at most, which is what its inLine says.
	waiting []*loop
	idle    chan struct{} // closed when all places are free and it is over
}

func newSlots(n int) *slots {
	s := &slots{size: n, free: n, idle: make(chan struct{})}
	s.some.L = &s.mu
	return s
}

// take takes most places at most, and reports whether there are no more. If there
// is none the loop is called when there is one again, unless it is over.
func (s *slots) take(l *loop, most int) (n int, full bool) {
	s.mu.Lock()
	if s.over { // since the loop looked
		s.mu.Unlock()
		return 0, true
	}
	n = min(most, s.free)
	s.free -= n
	full = s.free == 0
	switch {
	case n == 0 && !l.inLine:
		l.inLine = true
		s.waiting = append(s.waiting, l)
	case n > 0 && l.inLine: // it would be called for a place that this claim cannot use
		l.inLine = false
		i := slices.Index(s.waiting, l)
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	next := s.nextLocked()
	s.mu.Unlock()
	next.claimSoon()
	return n, full
}

// put gives places back.
func (s *slots) put(n int) { s.release(n).claimSoon() }

// release gives places back, and returns a loop that is to claim, or nil.
func (s *slots) release(n int) *loop {
	if n == 0 {
		return nil
	}
	s.mu.Lock()
	if s.free == 0 {
		s.some.Broadcast()
	}
	s.free += n
	if s.over && s.free == s.size {
		close(s.idle)
	}
	next := s.nextLocked()
	s.mu.Unlock()
	return next
}

// nextLocked returns the loop whose turn it is, or nil.
func (s *slots) nextLocked() *loop {
	if s.free == 0 || len(s.waiting) == 0 {
		return nil
	}
	l := s.waiting[0]
	s.waiting = s.waiting[1:]
	l.inLine = false
	return l
}

// await waits until there is a place. It returns false when it is over.
func (s *slots) await() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.free == 0 && !s.over {
		s.some.Wait()
	}
	return !s.over
}

// end says that no more tasks are claimed.
func (s *slots) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	s.some.Broadcast()
	if s.free == s.size {
		close(s.idle)
	}
}

func (s *slots) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size - s.free
}
