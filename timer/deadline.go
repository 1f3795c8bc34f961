package timer

import (
	"os"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/bubble"
	"github.com/tickless/tickless/internal/wheel"
)

// A Deadline is a moment that can be set again and again, and waited for. It is what
// a type with a SetDeadline method needs, such as a [net.Conn]. Embed it and call
// Init; let SetReadDeadline call Set, and let whatever blocks select on Done:
//
//	select {
//	case b := <-c.in:
//		return copy(p, b), nil
//	case <-c.readDeadline.Done():
//		return 0, os.ErrDeadlineExceeded
//	}
//
// While nobody waits, setting it allocates nothing and starts no timer; Done does.
// When the deadline is set later, a pending timer stays where it is and moves when it
// fires. Several goroutines may call Set, Done and Err at a time; none of them costs
// a goroutine. A Deadline must not be copied after Init. Once somebody has waited for
// it, it is garbage only after its timer has fired.
//
// A deadline that is pending when its Scheduler is closed, or that is set afterwards,
// passes all the same, by an alarm of the Scheduler's clock.
type Deadline struct {
	node
	// sh is the home shard, fixed by Init.
	sh *shard

	// All below is guarded by sh.mu.

	// due is when the deadline passes, never if there is none.
	due int64
	// done is what Done has returned last, nil if it was closed, or never asked for.
	done chan struct{}
	// over: the deadline has passed, and done was closed if there was one.
	over bool
	// fires is when the pending timer or alarm will fire, a tick and its slack included;
	// never if neither is pending.
	fires int64
	id    wheel.ID
	alarm clock.Alarm // in place of the timer, once the Scheduler is closed
}

// Init makes d a Deadline on s that is not set. It must not be called on a Deadline
// that has been used. It panics if s is nil.
func (d *Deadline) Init(s *Scheduler) {
	if s == nil {
		panic("timer: Deadline.Init with a nil Scheduler")
	}
	s.mustBeMade()
	d.owner = d
	d.sh = s.lockShard()
	d.due, d.fires = never, never
	d.sh.mu.Unlock()
}

// Set makes t the deadline, in place of the one before. The zero time means none. If
// t has passed, Err reports it, and Done's channel is closed at once, or, if the deadline
// before has passed too, when its timer fires, which is late then. If an earlier
// deadline has passed, Done makes a new channel, and Err returns nil until t.
func (d *Deadline) Set(t time.Time) {
	if d.sh == nil {
		panic("timer: Set called on a Deadline without Init")
	}
	due := int64(never)
	if !t.IsZero() {
		due = d.sh.s.momentOf(t)
	}
	d.set(due)
}

// set is one try of Set's. It reports false if there was no room for the timer.
func (d *Deadline) set(due int64) (settled bool) {
	d.sh.mu.Lock()
	defer d.sh.unlock() // also if to read the clock panics
	d.due = due
	if d.over {
		d.over, d.done = false, nil
	}
	// Whoever may be waiting already has a timer that fires too late, or none.
	return d.done == nil || due >= d.fires || d.armLocked(d.sh.s.now())
}

// Done returns a channel that is closed when the deadline has passed. The channel
// stays the same while the deadline is set to other moments, until it has passed.
func (d *Deadline) Done() <-chan struct{} {
	if d.sh == nil {
		panic("timer: Done called on a Deadline without Init")
	}
	done, _ := d.wait()
	return done
}

// wait is one try of Done's. It reports false if there was no room for the timer.
func (d *Deadline) wait() (done <-chan struct{}, settled bool) {
	d.sh.mu.Lock()
	defer d.sh.unlock() // also if to read the clock panics
	settled = true
	if d.done == nil && !d.over {
		d.done = make(chan struct{})
	}
	if !d.over && d.due < d.fires {
		settled = d.armLocked(d.sh.s.now())
	}
	if d.done == nil {
		return closedChan, settled
	}
	return d.done, settled
}

// Err returns [os.ErrDeadlineExceeded] if the deadline that is set now has passed, and
// else nil. So it may return nil after Done's channel was closed: the deadline may have
// been set to another moment since. Who has seen the channel closed need not ask.
func (d *Deadline) Err() error {
	if d.sh == nil {
		panic("timer: Err called on a Deadline without Init")
	}
	d.sh.mu.Lock()
	defer d.sh.mu.Unlock() // also if to read the clock panics
	if !d.over && d.due != never && d.sh.s.now() >= d.due {
		d.passLocked()
	}
	if d.over {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// passLocked notes that the deadline has passed.
func (d *Deadline) passLocked() {
	d.over = true
	if d.done != nil {
		close(d.done)
	}
}

// armLocked has the deadline pass at due, which is before the pending timer fires. It
// reports false, and has done nothing, if all shards must be asked for room first.
func (d *Deadline) armLocked(now int64) bool {
	if now >= d.due {
		d.passLocked() // the timer, if it is pending, finds nothing to do
		return true
	}
	wait := time.Duration(d.due - now)
	before, fires := d.fires, d.sh.firesAt(d.due, wait)
	if fires >= before {
		return true // in time by its own slack
	}
	d.fires = fires // unless it fires at once
	if before != never && d.sh.resetLocked(now, d.id, wait) {
		return true
	}
	if d.sh.placeLocked(now, &d.id, wait, nodePayload(&d.node), tagNode) != nil {
		d.alarmLocked(now)
	}
	return true
}

// alarmLocked has an alarm of the clock's ring at due.
func (d *Deadline) alarmLocked(now int64) {
	if d.alarm == nil {
		d.alarm = d.sh.s.clock.NewAlarm(d.ring)
	}
	d.fires = d.due
	d.sh.s.setAlarm(d.alarm, now, d.due)
}

// ring is the alarm's function.
func (d *Deadline) ring() {
	d.sh.mu.Lock()
	defer d.sh.unlock()
	now := d.sh.s.now()
	if d.fires == never {
		return
	}
	if now < d.fires { // or it was set again just as it rang
		d.sh.s.setAlarm(d.alarm, now, d.fires)
		return
	}
	if d.firedLocked(now) {
		d.alarmLocked(now)
	}
}

// firedLocked is what is done when the timer has fired. It reports whether the
// deadline is later.
func (d *Deadline) firedLocked(now int64) (later bool) {
	d.fires = never
	switch {
	case d.over || d.due == never:
		return false
	case now < d.due:
		return true
	}
	d.passLocked()
	return false
}

func (d *Deadline) expireLocked(sh *shard, at moment) func() {
	if d.firedLocked(at.now) {
		d.fires = sh.firesAt(d.due, time.Duration(d.due-at.now))
		d.id = sh.rearmLocked(at.now, d.due, &d.node)
	}
	return nil
}

func (d *Deadline) pendingFunc() func() { return nil }

// abandon has the deadline go on: the Scheduler was closed.
func (d *Deadline) abandon() {
	d.sh.mu.Lock()
	defer d.sh.unlock()
	d.fires = never // or for an alarm, if it was set since the timer was taken out
	if !d.over && d.due != never {
		d.alarmLocked(d.sh.s.now())
	}
}

// momentOf turns a time into a moment of now's, without reading the clock if it can.
func (s *Scheduler) momentOf(t time.Time) int64 {
	if s.system && !bubble.Monotonic(t) {
		// It is by the wall clock, which may have been set since the epoch.
		at, now := s.read()
		return deadlineAfter(now, t.Sub(at))
	}
	return max(0, int64(t.Sub(s.epoch)))
}
