package callback

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// hosts share out a worker's places among the hosts that are called, so that one
// that does not answer, with very many tasks, does not keep the others waiting.
//
// A host has room for a number of requests at a time, which begins at firstRoom.
// An answer, whatever its status, makes it one larger, up to the limit, and a
// request without an answer halves it, down to one. As many more may wait in
// their places. Both together take at most half of a worker's places. What comes
// beyond that is handed back to the queue, for about the time at which its turn
// comes.
type hosts struct {
	limit int

	mu    sync.Mutex
	m     map[string]*host
	sweep int // the number of hosts at which those are forgotten that were idle for long
}

// host is what is known of one, all of it guarded by hosts.mu. It is forgotten when
// nobody uses it, or a while later if it did not answer.
type host struct {
	room, running int
	waiting       []chan struct{} // closed when the running one's place is theirs
	took          time.Duration   // a moving average
	turn          time.Time       // of the one that was handed back last
	idle          time.Time       // since when nobody uses it
}

const (
	// firstRoom is a new host's room.
	firstRoom = 4
	// firstTook is how long a request is thought to take before there was one.
	firstTook = 50 * time.Millisecond
	// soonest and latest bound for how long a task is handed back.
	soonest, latest = 100 * time.Millisecond, 20 * time.Second
	// memory is how long it is remembered that a host did not answer.
	memory = time.Minute
)

// enter takes one of the places that the host may have of a worker's, and waits
// until it has room for a request. If it may not have another one, or the context
// ends before, ok is false, and after is when to come back. Otherwise the caller
// calls leave when the request is over.
func (s *hosts) enter(ctx context.Context, name string, places int) (h *host, after time.Duration, ok bool) {
	most := max(1, places/2)
	if places == 0 { // no worker's
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
		// It was called at the same moment.
		s.doneLocked(name, h)
	}
	return nil, soonest, false
}

// laterLocked returns for how long to hand back a task: one after the other gets
// the time at which the host can have done with those before it.
func (h *host) laterLocked(now time.Time) time.Duration {
	if first := now.Add(soonest); h.turn.Before(first) {
		h.turn = first
	}
	h.turn = h.turn.Add(h.took / time.Duration(h.room))
	if last := now.Add(latest); h.turn.After(last) {
		h.turn = last
		return latest/2 + rand.N(latest/2)
	}
	return h.turn.Sub(now)
}

// leave says that a request is over, how long it took, and whether there was an
// answer.
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
	if h.idle = time.Now(); h.room >= min(firstRoom, s.limit) && h.idle.After(h.turn) {
		delete(s.m, name)
	}
}

// forgetLocked forgets hosts that have been idle for long, now and then.
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
