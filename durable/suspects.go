package durable

// A suspect is a task that was running when its worker died: it may have killed the
// process. A Worker runs at most one suspect at a time, so that one suspect cannot make
// another crash.
//
// A suspect whose next crash would make it a dead letter must run alone. The Worker
// claims nothing more, waits until all other handlers have returned, and tells the
// store. Then it starts the suspect.

// suspectState describes the Worker's present suspect. places.mu guards it.
type suspectState struct {
	suspect         *attempt // runs, or waits until nothing else runs
	mustBeAlone     bool     // the suspect must run alone
	loopNotified    bool     // the suspect's loop was told that nothing else runs
	hangingHandlers int      // handlers that do not return and whose leases were given up
}

// diesIfItCrashes reports whether the run becomes a dead letter if this attempt
// crashes.
func (a *attempt) diesIfItCrashes() bool {
	return a.delivery.Crashes > 0 && a.delivery.Crashes >= a.loop.w.config.maxCrashes-1
}

// admitSuspect makes an attempt the Worker's suspect if earlier attempts crashed. It
// returns false if another loop has claimed a suspect at the same time.
func (p *placePool) admitSuspect(a *attempt) bool {
	if a.delivery.Crashes == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.suspect != nil {
		return false
	}
	p.suspect, p.mustBeAlone, p.loopNotified = a, a.diesIfItCrashes(), false
	return true
}

// forgetAttemptLocked records that the attempt is neither the suspect nor hanging.
func (p *placePool) forgetAttemptLocked(a *attempt) {
	if a.leaseGivenUp {
		a.leaseGivenUp = false
		p.hangingHandlers--
	}
	if p.suspect == a {
		p.suspect, p.mustBeAlone = nil, false
	}
}

// giveUpLease records that an attempt's lease was given up, although its handler has
// not returned.
func (p *placePool) giveUpLease(a *attempt) {
	now := p.w.now()
	p.mu.Lock()
	defer p.unlockAndNotify(now)
	p.forgetAttemptLocked(a)
	a.leaseGivenUp = true
	p.hangingHandlers++
}

// isSuspectAloneLocked reports whether the suspect must run alone, and nothing else
// runs. Claims under way count as running, because they reserve places.
func (p *placePool) isSuspectAloneLocked() bool {
	return p.mustBeAlone && p.totalPlaces-p.freePlaces-p.hangingHandlers == 1
}

// takeReadySuspectLocked returns the suspect if it waits to run alone and nothing else
// runs. It returns each suspect only once; otherwise it returns nil.
func (p *placePool) takeReadySuspectLocked() *attempt {
	if p.loopNotified || !p.isSuspectAloneLocked() {
		return nil
	}
	p.loopNotified = true
	return p.suspect
}

// containsOnlySuspect reports whether the suspect is the only element of attempts, and
// nothing else runs.
func (p *placePool) containsOnlySuspect(attempts []*attempt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(attempts) == 1 && attempts[0] == p.suspect && p.isSuspectAloneLocked()
}

// handBackSuspect hands a suspect that waits to run alone back to the store.
func (l *shardLoop) handBackSuspect(a *attempt) {
	l.waitingSuspect = nil
	a.leaseTimer.Stop()
	a.cancel(nil)
	l.reportAndReleasePlace(a.handBackReport())
}
