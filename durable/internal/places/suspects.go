package places

import "github.com/tickless/tickless/durable/store"

// suspects counts a Worker's suspects, guarded by Pool.mu.
type suspects struct {
	allowed  int      // how many may run at a time
	reserved int      // how many run, or may come with claims under way
	lastRuns bool     // the suspect that runs is a last one
	last     *Claimer // the claimer that may get a last suspect, or waits for it: others claim no suspects; nil: none
}

// reserve reserves suspects for a claim, at most n. only says whether the claim may get a last
// suspect.
func (s *suspects) reserve(c *Claimer, n int) (reserved int, only bool) {
	only = s.reserved == 0
	if s.lastRuns || s.last != nil && (s.last != c || !only) {
		return 0, false
	}
	if only {
		s.last = c
	}
	n = min(n, max(0, s.allowed-s.reserved))
	s.reserved += n
	return n, only
}

// canClaim reports whether the claimer's next claim may get a suspect.
func (s *suspects) canClaim(c *Claimer) bool {
	if s.last != nil {
		return s.last == c && s.reserved == 0
	}
	return !s.lastRuns && s.reserved < s.allowed
}

// settle is called after a claim that got unused suspects less than it had reserved. waiting is
// what the store says of others.
func (s *suspects) settle(c *Claimer, unused int, waiting store.WaitingSuspects) {
	s.reserved -= unused
	if s.last == c {
		s.last = nil
	}
	if waiting == store.LastWaits && s.last == nil {
		s.last = c
	}
}

// Admit counts a suspect that is about to run. isLast says that its next crash makes it a dead
// letter.
func (x *Place) Admit(isLast bool) {
	x.pool.mu.Lock()
	defer x.pool.mu.Unlock()
	x.isSuspect, x.isLastSuspect = true, isLast
	x.pool.suspects.lastRuns = x.pool.suspects.lastRuns || isLast
}

// Crash counts the crash of an attempt that may be a suspect: its lease is lost.
func (x *Place) Crash() {
	p, now := x.pool, x.pool.now()
	p.mu.Lock()
	defer p.unlockAndOffer(now)
	if x.endSuspectLocked() {
		p.suspects.allowed = 1
	}
}

// endSuspectLocked ends a suspect. It returns false if the attempt was none, or has crashed.
func (x *Place) endSuspectLocked() bool {
	if !x.isSuspect {
		return false
	}
	x.isSuspect = false
	s := &x.pool.suspects
	s.reserved--
	s.lastRuns = s.lastRuns && !x.isLastSuspect
	return true
}
