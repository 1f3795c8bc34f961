package timer

// A backlog is the callbacks that were due and wait for the dispatcher, which waits
// for an executor that may block it. If the pending timers are limited, a timer
// whose callback waits keeps its room until the callback is handed over: so an
// executor that cannot keep up is felt by who starts timers. Rooms are as good as
// one another: of the callbacks that wait, as many keep one as there are rooms, and
// the last that leave give them back.
type backlog struct {
	limit *limit // fixed; nil: nothing keeps room

	// All below is guarded by dispatch.mu.

	waiting int
	rooms   int // no more than waiting
}

// keepLocked counts callbacks that wait from now on, and rooms that were their
// timers'. A shard's lock is held, under which these fired.
func (d *dispatch) keepLocked(callbacks, rooms int) {
	d.mu.Lock()
	d.backlog.waiting += callbacks
	d.backlog.rooms += rooms
	d.giveUp()
}

// handedOver counts a callback that waits no more.
func (d *dispatch) handedOver() {
	d.mu.Lock()
	d.backlog.waiting--
	d.giveUp()
}

// giveUp gives back the rooms that nothing keeps, and unlocks mu.
func (d *dispatch) giveUp() {
	b := &d.backlog
	spare := max(0, b.rooms-b.waiting)
	b.rooms -= spare
	d.mu.Unlock()
	if spare > 0 {
		b.limit.give(spare)
	}
}

// submitWaiting is submit for the dispatcher.
func (d *dispatch) submitWaiting(f func()) {
	defer d.handedOver() // also if the executor runs f here, and f ends this goroutine
	d.submit(f)
}
