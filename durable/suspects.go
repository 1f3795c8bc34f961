package durable

// What ran when a worker died is suspect: it may have ended its process. A Worker runs one
// suspect at a time, beside tasks that are none, so that a poison task does not take others
// with it again and again. The last death that a task is allowed counts only if nothing ran
// beside it: for that the Worker claims no more, waits until all else has ended, and tells
// the store before the attempt begins.

// suspicion is what the places know of the suspect. It is guarded by places.mu.
type suspicion struct {
	suspect *attempt // which runs, or waits until it is alone
	alone   bool     // it is to be alone
	asked   bool     // its loop was told that it is
	hung    int      // places of handlers that do not return, and whose leases were given up
}

// isLast reports whether the run dies if the attempt's lease is lost.
func (a *attempt) isLast() bool {
	return a.d.Crashes > 0 && a.d.Crashes >= a.loop.w.config.maxCrashes-1
}

// admit makes an attempt that is suspect the one of the Worker. It returns false if there is
// another one: two loops may get one at the same time.
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

// clearLocked is for an attempt that has ended.
func (p *places) clearLocked(a *attempt) {
	if a.hung {
		a.hung = false
		p.hung--
	}
	if p.suspect == a {
		p.suspect, p.alone = nil, false
	}
}

// hang is for an attempt whose lease was given up, although its handler has not returned.
func (p *places) hang(a *attempt) {
	now := p.w.now()
	p.mu.Lock()
	defer p.unlock(now)
	p.clearLocked(a)
	a.hung = true
	p.hung++
}

// isAloneLocked reports whether the suspect is to be alone, and is. Claims under way have
// places too.
func (p *places) isAloneLocked() bool { return p.alone && p.size-p.free-p.hung == 1 }

// readyLocked returns the suspect when it has become alone.
func (p *places) readyLocked() *attempt {
	if p.asked || !p.isAloneLocked() {
		return nil
	}
	p.asked = true
	return p.suspect
}

// isAlone reports whether the attempts are the suspect, and nothing else runs.
func (p *places) isAlone(some []*attempt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(some) == 1 && some[0] == p.suspect && p.isAloneLocked()
}

// dismiss ends an attempt that waits until it is alone: it is handed back.
func (l *loop) dismiss(a *attempt) {
	l.waits = nil
	a.cut.Stop()
	a.cancel(nil)
	l.returned(a.handBack())
}
