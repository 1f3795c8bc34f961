package alarm

import (
	"container/heap"
	"io"
	"time"

	"github.com/tickless/tickless/internal/bubble"
)

// A member is an alarm of a hub's. The hub's lock guards all of it but h, f and then.
type member struct {
	h    *hub
	f    func() bool
	then func() // see NewThen

	// when is the moment that the alarm is set for, and index its place among those
	// that are set; unset if it is none of them.
	when  int64
	index int

	closed bool
	// left counts what Close's channel waits for: the calls of f that are under way,
	// and waiters that are about to end. done is that channel, once it is needed: made, or
	// closed. (One that Close made would belong to the testing/synctest bubble in which
	// Close is called, and who is left and closes it need not be there.)
	left       int
	done, made chan struct{}
}

const unset = -1

func (m *member) Reset(d time.Duration) {
	h := m.h
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.closed || !bubble.Monotonic(now) {
		return // in a bubble nobody knows the time, and no timer can be set
	}
	h.moveLocked(m, after(h.at(now), d))
	h.settleLocked(now)
}

func (m *member) Stop() {
	h := m.h
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.closed {
		return
	}
	h.removeLocked(m)
	h.settleLocked(now)
}

func (m *member) Close() <-chan struct{} {
	h := m.h
	now := time.Now()
	h.mu.Lock()
	if m.closed {
		defer h.mu.Unlock()
		return m.doneLocked()
	}
	m.closed = true
	h.removeLocked(m)
	var file io.Closer
	if bubble.Monotonic(now) && h.set.first() > after(h.at(now), time.Duration(near)) {
		file = h.takeLocked() // nobody needs it
	}
	h.fd.awaitLocked(m)
	h.settleLocked(now)
	h.awaitLocked(m)
	done := m.doneLocked()
	h.mu.Unlock()
	if file != nil {
		// This ends the goroutine that waits for the descriptor. It waits until nobody
		// reads, so it is done without the lock: that goroutine may be about to take
		// it, inside its Read.
		file.Close()
	}
	return done
}

// doneLocked returns the channel of a closed member.
func (m *member) doneLocked() <-chan struct{} {
	switch {
	case m.done != nil:
	case m.left == 0:
		m.done = closed
	default:
		m.done = m.made
	}
	return m.done
}

// leaveLocked is called when one of what Close's channel waits for is over.
func (m *member) leaveLocked() {
	if m.left--; m.left == 0 && m.done != nil {
		close(m.done)
	}
}

// call calls f, and then what is to be called after it.
func (m *member) call() {
	if m.callFirst() {
		m.then()
	}
}

// callFirst calls f, and returns what it does. The hub, which has counted the call, is
// not locked.
func (m *member) callFirst() (more bool) {
	defer func() { // also if f ends this goroutine
		now := time.Now()
		m.h.mu.Lock()
		defer m.h.mu.Unlock()
		m.leaveLocked()
		if more {
			m.h.crowdedLocked(m.h.at(now))
		}
		if m.h.armed == never {
			m.h.settleLocked(now)
		}
	}()
	return m.f()
}

// callDeep is call on a goroutine that has just begun. What alarms are for needs more
// than the 2 kB of stack that such a goroutine has. The runtime then copies the stack to
// a larger one, frame by frame: it is to do so while there are few.
func (m *member) callDeep() {
	growStack(0)
	m.call()
}

// growStack makes the stack as large as its frame.
//
//go:noinline
func growStack(i int) byte {
	var frame [1536]byte
	return frame[i]
}

// callAll calls each member's function on a goroutine of its own, the first on this.
//
// A goroutine that starts another puts that into its proc's next slot: so they
// follow each other there, however busy the procs are, where several that one
// goroutine starts would push each other to the end of the queue.
func callAll(ms []*member) {
	if len(ms) > 1 {
		go callAll(ms[1:])
	}
	ms[0].call()
}

// members are those that are set, as a heap.
type members []*member

var _ heap.Interface = (*members)(nil)

func (s members) Len() int           { return len(s) }
func (s members) Less(i, j int) bool { return s[i].when < s[j].when }

func (s members) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (s *members) Push(m any) {
	m.(*member).index = len(*s)
	*s = append(*s, m.(*member))
}

func (s *members) Pop() any {
	last := len(*s) - 1
	m := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	m.index = unset
	return m
}

// first returns the moment of the member that rings first, never if none is set.
func (s members) first() int64 {
	if len(s) == 0 {
		return never
	}
	return s[0].when
}
