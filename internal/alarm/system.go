package alarm

import (
	"sync"
	"time"
)

const (
	// near is how close a moment has to be for the descriptor to be held for it;
	// until then package time's timer waits alone, to wake up soonEnough before.
	near       = time.Second
	soonEnough = 5 * time.Millisecond
	// linger is how long the descriptor is kept when it is not needed.
	linger = 20 * time.Millisecond

	// A ring through the descriptor costs about 70 us of CPU on a virtual machine,
	// several times as much as one of package time's timer. So only rings that are
	// rare are exact: one in spacing, over more than a burst. (This is the generic
	// cell rate algorithm of ITU-T I.371.)
	spacing = 2 * time.Millisecond
	burst   = 64
	// If the timer rings so late and still before the descriptor, the procs are busy.
	// The descriptor is of no use then, for as long as busyFor.
	busyAfter = 200 * time.Microsecond
	busyFor   = 50 * time.Millisecond
)

// backupAfter is how long after the timer its backups ring.
var backupAfter = [...]time.Duration{2 * time.Millisecond, 10 * time.Millisecond}

// system is a timer of package time with backups and, on Linux, a timerfd; whichever
// comes first rings.
//
// The timer's function runs on a new goroutine that the runtime puts in front of a
// proc's run queue. A goroutine that waits for a descriptor goes to the end: on a
// process whose procs are busy that is late by as long as the queue is. So the timer
// is always set. The timerfd is set besides, to be exact while procs are idle, when
// the moment is near and rings are rare.
//
// Even the timer's goroutine may be late: if another timer of the process, or
// anything else, makes a goroutine ready before it gets to run, that one takes its
// place and it goes to the end of the queue. All that depends on this alarm would
// wait there with it. So the timer has backups.
type system struct {
	f func()

	mu sync.Mutex
	// All below is guarded by mu.

	// timer calls tick: at when, or soonEnough before, or at the end of the linger.
	// backups do so a while after when.
	timer   *time.Timer
	backups [len(backupAfter)]*time.Timer
	// backed: the backups are set.
	backed bool
	// set: the alarm is to ring at when.
	set  bool
	when time.Time
	// exact: the descriptor is set for when, too.
	exact  bool
	fd     descriptor
	closed bool
	// idle is since when the descriptor has not been needed, if it is not.
	idle time.Time

	// paced is when the alarm may ring exactly without counting towards the burst:
	// it moves on by spacing with each ring.
	paced time.Time
	// coarse is until when the procs count as busy.
	coarse time.Time

	// active counts the calls of f and the goroutines of the descriptor; done is
	// closed when the alarm is closed and there are none.
	active int
	done   chan struct{}
}

func newSystem(f func()) *system {
	a := &system{f: f, done: make(chan struct{})}
	a.timer = stopped(a.tick)
	for i := range a.backups {
		a.backups[i] = stopped(a.tick)
	}
	return a
}

// stopped returns a timer that is not set.
func stopped(f func()) *time.Timer {
	t := time.AfterFunc(1<<63-1, f)
	t.Stop()
	return t
}

func (a *system) Reset(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	now := time.Now()
	d = max(d, 0)
	a.set, a.when = true, now.Add(d)
	a.armLocked(now)
}

func (a *system) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.set {
		a.set = false
		a.armLocked(time.Now())
	}
}

// armLocked sets the timer and the descriptor for what comes next.
func (a *system) armLocked(now time.Time) {
	a.exact = false
	if !a.set {
		a.restLocked(now, linger)
		return
	}
	d := a.when.Sub(now)
	rare := !now.Before(a.coarse) && a.paced.Sub(now) <= burst*spacing
	switch {
	case d > near:
		a.restLocked(now, d-soonEnough)
		return
	case rare && a.openLocked():
		a.exact = true
		a.fd.set(d)
	}
	a.idle = time.Time{}
	a.timer.Reset(d)
	for i, after := range backupAfter {
		a.backups[i].Reset(d + after)
	}
	a.backed = true
}

// restLocked sets the timer for after d, or for the end of the linger if there is
// still a descriptor.
func (a *system) restLocked(now time.Time, d time.Duration) {
	if a.backed {
		for _, b := range a.backups {
			b.Stop()
		}
		a.backed = false
	}
	switch {
	case a.fd.isOpen():
		if a.idle.IsZero() {
			a.idle = now
		}
		d = min(d, a.idle.Add(linger).Sub(now))
	case !a.set:
		a.timer.Stop()
		return
	}
	a.timer.Reset(d)
}

// tick is the timer's function.
func (a *system) tick() {
	a.mu.Lock()
	defer a.mu.Unlock() // f may end this goroutine
	now := time.Now()
	switch {
	case a.closed:
	case a.set && !now.Before(a.when):
		if a.exact && now.Sub(a.when) > busyAfter {
			a.coarse = now.Add(busyFor)
			a.replaceLocked()
		}
		a.ringLocked(now)
	case a.set && !a.exact || !a.set:
		if a.fd.isOpen() && !a.idle.IsZero() && now.Sub(a.idle) >= linger {
			file := a.fd.takeLocked()
			a.mu.Unlock()
			file.Close() // without the lock: see Close
			a.mu.Lock()
			now = time.Now()
		}
		a.armLocked(now)
	}
}

// ringLocked calls f, without the lock.
func (a *system) ringLocked(now time.Time) {
	a.set, a.exact = false, false
	if a.paced.Before(now) {
		a.paced = now
	}
	if a.paced.Sub(now) <= burst*spacing {
		a.paced = a.paced.Add(spacing)
	}
	a.active++
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.leaveLocked()
		if !a.set && !a.closed {
			a.armLocked(time.Now())
		}
	}()
	a.f()
}

// leaveLocked is called when f has returned and when a waiter ends.
func (a *system) leaveLocked() {
	a.active--
	if a.closed && a.active == 0 {
		close(a.done)
	}
}

func (a *system) Close() <-chan struct{} {
	a.mu.Lock()
	file := a.fd.takeLocked()
	if !a.closed {
		a.closed, a.set, a.exact = true, false, false
		a.timer.Stop()
		for _, b := range a.backups {
			b.Stop()
		}
		if a.active == 0 {
			close(a.done)
		}
	}
	a.mu.Unlock()
	// This ends the goroutine that waits for the descriptor. It waits until nobody
	// reads, so it is done without the lock: that goroutine may be about to take it,
	// inside its Read.
	file.Close()
	return a.done
}
