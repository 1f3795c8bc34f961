package executor

// An Overload says what a [Pool] with a bounded queue does with a callback for which
// there is no room. No policy drops a callback silently.
type Overload int

const (
	// Block makes the submitter wait until there is room, or until Shutdown,
	// which releases it with [ErrClosed]. Where the submitter is a scheduler's
	// goroutine, the wait ends there: package timer's WithMaxPending brings it to
	// those who start timers.
	//
	// A callback that submits to its own pool may wait for itself. If the workers are
	// bounded and all of them do so, they wait for ever.
	Block Overload = iota

	// CallerRuns runs the callback on the submitting goroutine, ahead of
	// those that wait. Its panic is recovered as on a worker;
	// runtime.Goexit ends the submitter.
	CallerRuns

	// Reject refuses the callback with [ErrOverloaded] and counts it.
	Reject
)

// String returns the policy's name.
func (o Overload) String() string {
	switch o {
	case Block:
		return "Block"
	case CallerRuns:
		return "CallerRuns"
	case Reject:
		return "Reject"
	}
	return "unknown"
}

// MayBlock reports whether Submit may take as long as a callback does. It may if the
// queue is bounded and the policy is [Block] or [CallerRuns]. A caller that must not
// be held up, such as a scheduler's poller, then submits from another goroutine.
func (p *Pool) MayBlock() bool { return p.bound != unbounded && p.overload != Reject }

// roomLocked returns how many callbacks may be added: what the bound leaves,
// where a callback does not count as waiting if a worker is on its way for it
// or can be started at once.
func (p *Pool) roomLocked() int {
	if p.bound == unbounded {
		return unbounded
	}
	return max(0, p.bound+p.starting+max(0, p.limit-p.workers)-p.queue.len())
}

// overloadedLocked applies the policy to n callbacks for which there was no
// room: here is whether the caller runs one of them itself.
func (p *Pool) overloadedLocked(n int) (here bool, err error) {
	switch {
	case p.closed:
		p.rejected += uint64(n)
		return false, ErrClosed
	case p.overload == Reject:
		p.rejected += uint64(n)
		return false, ErrOverloaded
	case p.overload == CallerRuns:
		p.submitted++
		p.callerRan++
		p.callers++
		return true, nil
	}
	return false, nil
}

// runHere runs f on the submitter. However f ends, it is accounted for.
func (p *Pool) runHere(f func()) {
	defer func() {
		p.mu.Lock()
		p.callers--
		p.finishLocked()
		p.mu.Unlock()
	}()
	defer p.catch()
	f()
}

// awaitRoomLocked returns when there is room or the pool is closed. It gives
// up the lock while it waits. Nobody overtakes the submitters that wait
// already.
//
// No room goes unnoticed: a worker takes a callback and then reads waiting; a
// submitter counts itself in waiting and then looks for room. So either the
// submitter sees the room, or the worker sees the submitter and comes to the
// lock to wake it.
func (p *Pool) awaitRoomLocked() {
	queued := p.waiting.Load() > 0
	if !queued && p.roomLocked() > 0 {
		return
	}
	p.mustBeAtHomeLocked()
	p.waiting.Inc()
	for !p.closed && (queued || p.roomLocked() == 0) {
		p.room.Wait()
		queued = false
	}
	p.waiting.Dec()
}

// passRoomLocked wakes one waiting submitter if there is room, which it
// passes on in turn when it has taken its share. Only the taking of a callback
// makes room: where the watchdog lets more workers start, they take one next.
func (p *Pool) passRoomLocked() {
	if p.waiting.Load() > 0 && p.roomLocked() > 0 {
		p.room.Signal()
	}
}
