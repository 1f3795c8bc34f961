package callback

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// hosts limits the concurrent requests to each host. Otherwise a host that does not
// answer could use all places of a worker.
//
// The limit of a host starts at startLimit. Each response raises the limit by 1, up to
// maxLimit. Each request without a response halves the limit, down to 1.
//
// As many tasks may wait as may run: with a limit of 4, 4 tasks run and 4 tasks wait.
// All of them use at most half of the worker's places. Other tasks are handed back to
// the queue.
type hosts struct {
	maxLimit int

	mu      sync.Mutex
	byName  map[string]*host
	sweepAt int // the number of hosts at which forgetLocked runs again
}

// host is the state of one host. hosts.mu guards it.
type host struct {
	limit, running int
	waiting        []chan struct{} // each is closed when its task may run
	avgDuration    time.Duration   // moving average of the requests' durations
	nextFree       time.Time       // when the last task that was handed back may run
	idleSince      time.Time       // when the last request ended
}

const (
	// startLimit is the limit of a new host.
	startLimit = 4
	// startDuration is the assumed duration of a host's first request.
	startDuration = 50 * time.Millisecond
	// minDelay and maxDelay bound the delay of a task that is handed back.
	minDelay, maxDelay = 100 * time.Millisecond, 20 * time.Second
	// forgetAfter is how long a host that did not answer is remembered.
	forgetAfter = time.Minute
)

// enter waits until a request to the host may start. The caller must call leave after
// the request. If too many tasks already wait, or if ctx ends, ok is false, and no
// request may start: the caller must hand the task back, with the returned delay.
func (s *hosts) enter(ctx context.Context, name string, places int) (h *host, delay time.Duration, ok bool) {
	maxTasks := max(1, places/2)
	if places == 0 { // not called by a worker
		maxTasks = math.MaxInt
	}
	s.mu.Lock()
	h = s.byName[name]
	if h == nil {
		s.forgetLocked()
		h = &host{limit: min(startLimit, s.maxLimit), avgDuration: startDuration}
		s.byName[name] = h
	}
	limit := min(h.limit, maxTasks)
	switch {
	case h.running < limit:
		h.running++
		s.mu.Unlock()
		return h, 0, true
	case len(h.waiting) >= limit || h.running+len(h.waiting) >= maxTasks:
		delay = h.delayLocked(time.Now())
		s.mu.Unlock()
		return nil, delay, false
	}
	turn := make(chan struct{})
	h.waiting = append(h.waiting, turn)
	s.mu.Unlock()

	select {
	case <-turn:
		return h, 0, true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(h.waiting, turn); i >= 0 {
		h.waiting = slices.Delete(h.waiting, i, i+1)
	} else {
		// ctx ended just after this task got its turn. Pass the turn on.
		s.doneLocked(name, h)
	}
	return nil, minDelay, false
}

// delayLocked returns the delay for a task that is handed back. By then the host has
// probably finished the requests of earlier tasks.
func (h *host) delayLocked(now time.Time) time.Duration {
	if soonest := now.Add(minDelay); h.nextFree.Before(soonest) {
		h.nextFree = soonest
	}
	h.nextFree = h.nextFree.Add(h.avgDuration / time.Duration(h.limit))
	if last := now.Add(maxDelay); h.nextFree.After(last) {
		h.nextFree = last
		return maxDelay/2 + rand.N(maxDelay/2)
	}
	return h.nextFree.Sub(now)
}

// leave records that a request is over, how long it took, and whether the host
// answered.
func (s *hosts) leave(name string, h *host, took time.Duration, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answered {
		h.limit = min(h.limit+1, s.maxLimit)
	} else {
		h.limit = max(h.limit/2, 1)
	}
	h.avgDuration += (took - h.avgDuration) / 8
	s.doneLocked(name, h)
}

func (s *hosts) doneLocked(name string, h *host) {
	h.running--
	for h.running < h.limit && len(h.waiting) > 0 {
		h.running++
		close(h.waiting[0])
		h.waiting = h.waiting[1:]
	}
	if h.running > 0 {
		return
	}
	if h.idleSince = time.Now(); h.limit >= min(startLimit, s.maxLimit) && h.idleSince.After(h.nextFree) {
		delete(s.byName, name)
	}
}

// forgetLocked deletes hosts that were idle for longer than forgetAfter. It does so
// only after the number of hosts has doubled.
func (s *hosts) forgetLocked() {
	if len(s.byName) < s.sweepAt {
		return
	}
	now := time.Now()
	for name, h := range s.byName {
		if h.running == 0 && now.Sub(h.idleSince) > forgetAfter {
			delete(s.byName, name)
		}
	}
	s.sweepAt = 2*len(s.byName) + 64
}
