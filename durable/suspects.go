package durable

// A suspect is a task that was running when its worker died: it may have killed the
// process. A Worker runs only one suspect at a time beside other tasks. So a poison
// task does not crash other suspects again and again.
//
// The last crash that a task is allowed counts only if the task ran alone. So before
// that attempt the Worker claims nothing more, and waits until all other handlers have
// returned. Then it tells the store that the task is alone, and starts the attempt.

// suspectState is about the Worker's present suspect. places.mu guards it.
type suspicion struct {
	suspect *attempt // runs, or waits until nothing else runs
	alone   bool     // the suspect must run alone
	asked   bool     // the suspect's loop was told that nothing else runs
	hung    int      // handlers that do not return and whose leases were given up
}

// diesIfItCrashes reports whether the run becomes a dead letter if this attempt
// crashes.
func (a *attempt) isLast() bool {
	return a.d.Crashes > 0 && a.d.Crashes >= a.loop.w.config.maxCrashes-1
}

// admitSuspect makes an attempt the Worker's suspect, if earlier attempts crashed. It
// returns false if the Worker already has a suspect: two loops may claim one at the
// same time.
func (p *places) admit(a *attempt) bool {
	if a.d.Crashes == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.suspect != nil {
		return false
	}
	p.suspect, p.alone, p.asked = a, a.isLast(), false
	return true
}

// forgetLocked removes an attempt that has ended. It may be the suspect, or hang.
func (p *places) clearLocked(a *attempt) {
	if a.hung {
		a.hung = false
		p.hung--
	}
	if p.suspect == a {
		p.suspect, p.alone = nil, false
	}
}

// giveUp records that an attempt's lease was given up, although its handler has not
// returned.
func (p *places) hang(a *attempt) {
	now := p.w.now()
	p.mu.Lock()
	defer p.unlock(now)
	p.clearLocked(a)
	a.hung = true
	p.hung++
}

// isAloneLocked reports whether the suspect must run alone, and nothing else runs.
// Claims under way count as running, because they reserve places.
func (p *places) isAloneLocked() bool { return p.alone && p.size-p.free-p.hung == 1 }

// readyLocked returns the suspect once, when nothing else runs any more.
func (p *places) readyLocked() *attempt {
	if p.asked || !p.isAloneLocked() {
		return nil
	}
	p.asked = true
	return p.suspect
}

// isOnly reports whether the suspect is the only element of attempts, and nothing else
// runs.
func (p *places) isAlone(some []*attempt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(some) == 1 && some[0] == p.suspect && p.isAloneLocked()
}

// handBackWaiting hands back a suspect that waits to run alone.
func (l *loop) dismiss(a *attempt) {
	l.waitsAlone = nil
	a.leaseTimer.Stop()
	a.cancel(nil)
	l.returned(a.handBack())
}
