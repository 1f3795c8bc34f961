package timer

// A backlog is the callbacks that were due and wait for the dispatcher, which waits
// for an executor that may block it. If the pending timers are limited, a timer
// whose callback waits keeps its room until the callback is handed over: so an
// executor that cannot keep up is felt by who starts timers. Rooms are as good as
// one another: of the callbacks that wait, as many keep one as there are rooms, and
// the last that leave give them back.
type backlog struct {
	limit *limit // fixed; nil: nothing keeps room

	// All below is guarded by handOver.mu.

	waiting int
	rooms   int // no more than waiting
}

// keepLocked counts callbacks that wait from now on, and rooms that were their
// timers'. A shard's lock is held, under which these fired.
func (h *handOver) keepLocked(callbacks, rooms int) {
	h.mu.Lock()
	h.backlog.waiting += callbacks
	h.backlog.rooms += rooms
	h.giveUp()
}

// handedOver counts a callback that waits no more.
func (h *handOver) handedOver() {
	h.mu.Lock()
	h.backlog.waiting--
	h.giveUp()
}

// giveUp gives back the rooms that nothing keeps, and unlocks mu.
func (h *handOver) giveUp() {
	b := &h.backlog
	spare := max(0, b.rooms-b.waiting)
	b.rooms -= spare
	h.mu.Unlock()
	if spare > 0 {
		b.limit.give(spare)
	}
}

// submitWaiting is submit for the dispatcher.
func (h *handOver) submitWaiting(f func()) {
	defer h.handedOver() // also if the executor runs f here, and f ends this goroutine
	h.submit(f)
}
