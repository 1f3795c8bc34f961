package durable

// A task that was running when its worker died is a suspect: it may have killed the
// process. A Worker runs one suspect at a time beside other tasks, so that a poison
// task does not crash other suspects again and again. The last crash that a task is
// allowed counts only if the task ran alone. For that, the Worker claims nothing more,
// waits until all other handlers have returned, and tells the store before the attempt
// starts.

// suspicion is the state of the suspect, guarded by places.mu.
type suspicion struct {
	suspect *attempt // runs, or waits until it is alone
	alone   bool     // the suspect must run alone
	asked   bool     // the suspect's loop knows that it is alone
	hung    int      // places of handlers that do not return and whose leases were given up
}

// isLast reports whether the run becomes a dead letter if this attempt crashes.
func (a *attempt) isLast() bool {
	return a.d.Crashes > 0 && a.d.Crashes >= a.loop.w.config.maxCrashes-1
}

// admit makes an attempt the Worker's suspect, if it is one. It returns false if there
// is another suspect, because two loops may claim one at the same time.
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

// clearLocked removes an attempt that has ended.
func (p *places) clearLocked(a *attempt) {
	if a.hung {
		a.hung = false
		p.hung--
	}
	if p.suspect == a {
		p.suspect, p.alone = nil, false
	}
}

// hang records that an attempt's lease was given up although its handler has not
// returned.
func (p *places) hang(a *attempt) {
	now := p.w.now()
	p.mu.Lock()
	defer p.unlock(now)
	p.clearLocked(a)
	a.hung = true
	p.hung++
}

// isAloneLocked reports whether the suspect must run alone and nothing else runs.
// Claims under way count as running, because they reserve places.
func (p *places) isAloneLocked() bool { return p.alone && p.size-p.free-p.hung == 1 }

// readyLocked returns the suspect when it has become alone.
func (p *places) readyLocked() *attempt {
	if p.asked || !p.isAloneLocked() {
		return nil
	}
	p.asked = true
	return p.suspect
}

// isAlone reports whether some consists of the suspect only, and nothing else runs.
func (p *places) isAlone(some []*attempt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(some) == 1 && some[0] == p.suspect && p.isAloneLocked()
}

// dismiss hands back an attempt that waits to be alone.
func (l *loop) dismiss(a *attempt) {
	l.waitsAlone = nil
	a.leaseTimer.Stop()
	a.cancel(nil)
	l.returned(a.handBack())
}
