package durable

// A suspect is a task that was running when its worker died: it may have killed the
// process. A Worker runs only one suspect at a time beside other tasks. So a poison
// task does not crash other suspects again and again.
//
// The last crash that a task is allowed counts only if the task ran alone. So before
// that attempt the Worker claims nothing more, and waits until all other handlers have
// returned. Then it tells the store that the task is alone, and starts the attempt.

// suspectState is about the Worker's present suspect. places.mu guards it.
type suspectState struct {
	suspect     *attempt // runs, or waits until nothing else runs
	mustBeAlone bool     // the suspect must run alone
	told        bool     // the suspect's loop was told that nothing else runs
	hanging     int      // handlers that do not return and whose leases were given up
}

// diesIfItCrashes reports whether the run becomes a dead letter if this attempt
// crashes.
func (a *attempt) diesIfItCrashes() bool {
	return a.delivery.Crashes > 0 && a.delivery.Crashes >= a.loop.w.config.maxCrashes-1
}

// admitSuspect makes an attempt the Worker's suspect, if earlier attempts crashed. It
// returns false if the Worker already has a suspect: two loops may claim one at the
// same time.
func (p *places) admitSuspect(a *attempt) bool {
	if a.delivery.Crashes == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.suspect != nil {
		return false
	}
	p.suspect, p.mustBeAlone, p.told = a, a.diesIfItCrashes(), false
	return true
}

// When an attempt has ended, forgetLocked no longer counts it as the suspect or as
// hanging.
func (p *places) forgetLocked(a *attempt) {
	if a.givenUp {
		a.givenUp = false
		p.hanging--
	}
	if p.suspect == a {
		p.suspect, p.mustBeAlone = nil, false
	}
}

// giveUp records that an attempt's lease was given up, although its handler has not
// returned.
func (p *places) giveUp(a *attempt) {
	now := p.w.now()
	p.mu.Lock()
	defer p.unlockAndNotify(now)
	p.forgetLocked(a)
	a.givenUp = true
	p.hanging++
}

// isAloneLocked reports whether the suspect must run alone, and nothing else runs.
// Claims under way count as running, because they reserve places.
func (p *places) isAloneLocked() bool { return p.mustBeAlone && p.size-p.free-p.hanging == 1 }

// readyLocked returns the suspect once, when nothing else runs any more.
func (p *places) readyLocked() *attempt {
	if p.told || !p.isAloneLocked() {
		return nil
	}
	p.told = true
	return p.suspect
}

// isOnlyAttempt reports whether the suspect is the only element of attempts, and
// nothing else runs.
func (p *places) isOnlyAttempt(attempts []*attempt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(attempts) == 1 && attempts[0] == p.suspect && p.isAloneLocked()
}

// handBackWaiting hands back a suspect that waits to run alone.
func (l *loop) handBackWaiting(a *attempt) {
	l.waitsToBeAlone = nil
	a.leaseTimer.Stop()
	a.cancel(nil)
	l.reportAndRelease(a.handBackReport())
}
