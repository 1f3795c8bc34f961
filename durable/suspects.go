package durable

import "github.com/tickless/tickless/durable/store"

// A suspect is a run that has crashed so often that it may be the cause: see
// [store.IsSuspect]. A Worker runs few suspects at a time, so that one that kills the
// process again takes few others with it. A Worker begins with one. Each suspect that
// returns allows one more, and a crash takes the number back to one.
//
// A last suspect is one whose next crash makes it a dead letter. A Worker runs it only
// while it runs no other suspect.
//
// Suspects run beside all other tasks, which never wait for them. So a run dies without
// guilt only if tasks that are not suspects crash its Worker that often too.

// suspectState counts the Worker's suspects, guarded by places.mu.
type suspectState struct {
	suspectsAllowed  int        // how many may run at a time
	suspectsReserved int        // how many run, or may come with claims under way
	lastSuspectRuns  bool       // the suspect that runs is a last one
	lastSuspectLoop  *shardLoop // the loop that waits for a last suspect: others claim no suspects; nil: none
}

// reserveSuspectsLocked reserves suspects for a claim of the loop. only says whether the
// claim may get a last suspect.
func (p *placePool) reserveSuspectsLocked(l *shardLoop, maxSuspects int) (n int, only bool) {
	only = p.suspectsReserved == 0
	if p.lastSuspectRuns || p.lastSuspectLoop != nil && (p.lastSuspectLoop != l || !only) {
		return 0, false
	}
	p.lastSuspectLoop = nil
	n = min(maxSuspects, max(0, p.suspectsAllowed-p.suspectsReserved))
	p.suspectsReserved += n
	return n, only
}

// canClaimSuspectsLocked reports whether the loop's next claim may get a suspect.
func (p *placePool) canClaimSuspectsLocked(l *shardLoop) bool {
	if p.lastSuspectLoop != nil {
		return p.lastSuspectLoop == l && p.suspectsReserved == 0
	}
	return !p.lastSuspectRuns && p.suspectsReserved < p.suspectsAllowed
}

// keepSuspectsLocked is called after a claim for which n suspects were reserved. started
// is how many run now, and waiting is what the store says of others.
func (p *placePool) keepSuspectsLocked(l *shardLoop, n, started int, waiting store.WaitingSuspects) {
	p.suspectsReserved -= n - started
	if waiting == store.LastWaits && p.lastSuspectLoop == nil {
		p.lastSuspectLoop = l
	}
}

// isLastSuspect reports whether the run becomes a dead letter if this attempt crashes.
func (a *attempt) isLastSuspect() bool {
	return a.isSuspect && a.delivery.Crashes+1 >= a.loop.w.config.maxCrashes
}

// admitSuspect counts an attempt at a suspect that is about to run.
func (p *placePool) admitSuspect(a *attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.countsAsSuspect = true
	p.lastSuspectRuns = p.lastSuspectRuns || a.isLastSuspect()
}

// endSuspect counts the crash of an attempt that may be a suspect: its lease is lost.
func (p *placePool) endSuspect(a *attempt) {
	now := p.w.now()
	p.mu.Lock()
	defer p.unlockAndNotify(now)
	p.endSuspectLocked(a, false)
}

// endSuspectLocked counts the end of an attempt that may be a suspect. returned says that
// its handler has returned before a lease was lost.
func (p *placePool) endSuspectLocked(a *attempt, returned bool) {
	if !a.countsAsSuspect {
		return
	}
	a.countsAsSuspect = false
	p.suspectsReserved--
	if a.isLastSuspect() {
		p.lastSuspectRuns = false
	}
	if returned {
		p.suspectsAllowed = min(p.suspectsAllowed+1, p.totalPlaces)
	} else {
		p.suspectsAllowed = 1
	}
}
