package callback

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// hosts shares a worker's places among the called hosts, so that one host that does not
// answer and has very many tasks does not delay the others.
//
// Each host has room for a number of concurrent requests, firstRoom at first. A
// response of any status adds one, up to the limit. A request without a response halves
// the room, down to one. As many more tasks may wait in the worker's places. Running
// and waiting tasks together take at most half of the places. Further tasks are handed
// back to the queue, until about the time when the host has room for them.
type hosts struct {
	limit int

	mu    sync.Mutex
	m     map[string]*host
	sweep int // the number of hosts at which forgetLocked runs again
}

// host is the state of one host, guarded by hosts.mu. It is deleted when it has no
// requests. A host that did not answer is kept a while longer.
type host struct {
	room, running int
	waiting       []chan struct{} // each is closed when its task may run
	took          time.Duration   // moving average of the requests' durations
	nextFree      time.Time       // when the task handed back last may run
	idle          time.Time       // when the last request ended
}

const (
	// firstRoom is the room of a new host.
	firstRoom = 4
	// firstTook is the assumed duration of a request before the first one ends.
	firstTook = 50 * time.Millisecond
	// soonest and latest are the limits of the delay of a task that is handed back.
	soonest, latest = 100 * time.Millisecond, 20 * time.Second
	// memory is how long a host that did not answer is remembered.
	memory = time.Minute
)

// enter waits until the host has room for a request. If the host already uses its share
// of the worker's places, or ctx ends first, ok is false, and after is the delay for
// handing the task back. Otherwise the caller must call leave after the request.
func (s *hosts) enter(ctx context.Context, name string, places int) (h *host, after time.Duration, ok bool) {
	most := max(1, places/2)
	if places == 0 { // not called by a worker
		most = math.MaxInt
	}
	s.mu.Lock()
	h = s.m[name]
	if h == nil {
		s.forgetLocked()
		h = &host{room: min(firstRoom, s.limit), took: firstTook}
		s.m[name] = h
	}
	room := min(h.room, most)
	switch {
	case h.running < room:
		h.running++
		s.mu.Unlock()
		return h, 0, true
	case len(h.waiting) >= room || h.running+len(h.waiting) >= most:
		after = h.laterLocked(time.Now())
		s.mu.Unlock()
		return nil, after, false
	}
	mine := make(chan struct{})
	h.waiting = append(h.waiting, mine)
	s.mu.Unlock()

	select {
	case <-mine:
		return h, 0, true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(h.waiting, mine); i >= 0 {
		h.waiting = slices.Delete(h.waiting, i, i+1)
	} else {
		// The host had just given us room: pass it on.
		s.doneLocked(name, h)
	}
	return nil, soonest, false
}

// laterLocked returns the delay for a task that is handed back. Each task gets the time
// at which the host has probably finished the tasks before it.
func (h *host) laterLocked(now time.Time) time.Duration {
	if first := now.Add(soonest); h.nextFree.Before(first) {
		h.nextFree = first
	}
	h.nextFree = h.nextFree.Add(h.took / time.Duration(h.room))
	if last := now.Add(latest); h.nextFree.After(last) {
		h.nextFree = last
		return latest/2 + rand.N(latest/2)
	}
	return h.nextFree.Sub(now)
}

// leave records that a request is over, how long it took, and whether the host
// answered.
func (s *hosts) leave(name string, h *host, took time.Duration, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answered {
		h.room = min(h.room+1, s.limit)
	} else {
		h.room = max(h.room/2, 1)
	}
	h.took += (took - h.took) / 8
	s.doneLocked(name, h)
}

func (s *hosts) doneLocked(name string, h *host) {
	h.running--
	for h.running < h.room && len(h.waiting) > 0 {
		h.running++
		close(h.waiting[0])
		h.waiting = h.waiting[1:]
	}
	if h.running > 0 {
		return
	}
	if h.idle = time.Now(); h.room >= min(firstRoom, s.limit) && h.idle.After(h.nextFree) {
		delete(s.m, name)
	}
}

// forgetLocked deletes hosts that have been idle for long. It does so only each time
// the number of hosts has doubled.
func (s *hosts) forgetLocked() {
	if len(s.m) < s.sweep {
		return
	}
	now := time.Now()
	for name, h := range s.m {
		if h.running == 0 && now.Sub(h.idle) > memory {
			delete(s.m, name)
		}
	}
	s.sweep = 2*len(s.m) + 64
}
