package timer

import (
	"context"
	"time"
	"unsafe"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/wheel"
)

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (m *ctxMore) doneChan() chan struct{} {
	p := m.done.Load()
	return *(*chan struct{})(unsafe.Pointer(&p))
}

func (m *ctxMore) setDone(c chan struct{}) { m.done.Store(*(*unsafe.Pointer)(unsafe.Pointer(&c))) }

func (c *deadlineCtx) Done() <-chan struct{} {
	m := c.more.Load()
	if m != nil {
		if done := m.doneChan(); done != nil {
			// If the parent is done, this is too, and now.
			if c.state.Load()&(ctxStateMask|ctxKindMask) != ctxWaiting|uint32(ctxUnderStd)<<ctxKindShift || c.parent.Err() != nil {
				c.Err()
			}
			return done
		}
	}
	if m = c.arm(); m == nil {
		return closedChan
	}
	c.mu.Lock()
	done := m.doneChan()
	if done == nil {
		if done = closedChan; c.phase() == ctxWaiting {
			done = make(chan struct{})
		}
		m.setDone(done)
	}
	c.mu.Unlock()
	c.Err()
	return done
}

// arm has the context wait, unless it does or is done. It returns nil if it was
// done without ever having waited.
func (c *deadlineCtx) arm() *ctxMore {
	if c.phase() != ctxIdle {
		return c.armed()
	}
	now := c.s.now()
	if c.check(now); c.phase() != ctxIdle {
		return c.armed()
	}
	nearest, kind := stdKinds().nearest(c.parent)
	return c.armUnder(now, nearest, kind)
}

// armed returns what the context has if it waits or has waited. mu must not be held.
func (c *deadlineCtx) armed() *ctxMore {
	m := c.more.Load()
	if m == nil || c.phase() == ctxWaiting {
		return m
	}
	// It may have been cancelled while somebody has it wait, who holds the lock.
	c.mu.Lock()
	defer c.mu.Unlock()
	if m = c.more.Load(); m.place.child == nil {
		return nil
	}
	return m
}

// armUnder has an idle context wait for the end of nearest, in which its parent's end
// is to be seen.
func (c *deadlineCtx) armUnder(now int64, nearest context.Context, kind ctxKind) *ctxMore {
	ours, _ := nearest.(*deadlineCtx)
	if ours != nil {
		ours.arm()
	}
	var above <-chan struct{}
	if kind >= ctxUnderStd {
		above = nearest.Done()
	}
	c.mu.Lock()
	if c.phase() != ctxIdle {
		c.mu.Unlock()
		return c.armed()
	}
	m := c.more.Load()
	if m == nil {
		m = new(ctxMore)
	}
	m.place.child = c
	due := c.due
	started := startNever
	if due != never {
		started = c.startLocked(m, now, due)
	}
	over, register := false, false
	switch {
	case ours != nil:
		m.nearest = ours
		over = !ours.addHook(&m.place)
	case kind != ctxAlone:
		var std context.Context
		if kind == ctxUnderStd {
			m.above, std = above, nearest
		}
		m.group, register = c.s.ctxs.join(above, std, &m.place)
	}
	c.more.Store(m)
	if !c.move(ctxIdle, ctxWaiting) {
		// It was cancelled meanwhile: there is nothing to wait for.
		timer := m.timer
		m.timer = Handle{}
		c.mu.Unlock()
		timer.Stop()
		if register {
			m.group.register(nearest) // others may have joined the group already
		}
		c.leave(m, false)
		return m
	}
	c.mu.Unlock()
	if register {
		m.group.register(nearest)
	}
	switch {
	case over:
		if end, ok := ours.seen(now, c.s); ok {
			c.end(c.judge(end))
		}
	case started == startDue:
		c.end(c.timeout())
	case started == startRefused:
		c.fallBack()
	}
	return m
}

// What came of starting a context's timer.
const (
	startNever   = iota // there is none to start
	startPending        // it is pending
	startDue            // it is due already
	startRefused        // the Scheduler takes no more
)

// startLocked starts the context's timer.
func (c *deadlineCtx) startLocked(m *ctxMore, now, due int64) int {
	s := c.s
	sh := s.lockShard()
	id, err := sh.startLocked(now, time.Duration(due-now), ctxPayload(c), tagContext)
	if err == nil && id != (wheel.ID{}) {
		m.timer = sh.handleLocked(id)
	}
	sh.unlock()
	if err != nil {
		return startRefused
	}
	if id == (wheel.ID{}) {
		return startDue
	}
	return startPending
}

// fallBack has the context's deadline come by an alarm of the clock's own, because
// the Scheduler takes no more timers, or was closed while this one was pending.
func (c *deadlineCtx) fallBack() {
	var alarm clock.Alarm
	alarm = c.s.clock.NewAlarm(func() {
		now := c.s.now()
		switch {
		case now >= c.due:
			c.end(c.timeout())
		case c.phase() == ctxWaiting:
			c.s.setAlarm(alarm, now, c.due)
			if c.phase() > ctxWaiting {
				alarm.Stop() // as below
			}
		}
	})
	c.mu.Lock()
	over := c.phase() != ctxWaiting
	if !over {
		m := c.more.Load()
		m.timer, m.alarm = Handle{}, alarm
	}
	c.mu.Unlock()
	if over {
		return
	}
	c.s.setAlarm(alarm, c.s.now(), c.due)
	if c.phase() > ctxWaiting {
		alarm.Stop() // whoever ended it may have stopped the alarm before it was set
	}
}

// leave takes a context that is done off the list of those that its parent tells.
func (c *deadlineCtx) leave(m *ctxMore, onPoller bool) {
	if m.nearest != nil {
		m.nearest.removeHook(&m.place)
	}
	if m.group == nil {
		return
	}
	if takeBack := m.group.remove(&m.place); takeBack != nil {
		if onPoller {
			c.s.telling.Add(1)
			go func() { // it may wait for locks that are not ours
				defer c.s.telling.Add(-1)
				takeBack()
			}()
		} else {
			takeBack()
		}
	}
}
