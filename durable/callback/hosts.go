package callback

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// hostLimiter limits the concurrent requests to each host. Otherwise a host that does
// not answer could occupy a whole worker.
//
// A host's limit starts at startLimit. Each response raises the limit by 1, up to
// maxLimit. Each request without a response halves the limit, down to 1.
type hostLimiter struct {
	maxLimit int

	mu         sync.Mutex
	hostByName map[string]*host
	sweepSize  int // the number of hosts at which deleteIdleLocked checks them all
}

// host is the state of one host. hostLimiter.mu guards it.
type host struct {
	limit, running int             // numbers of requests
	waiting        []chan struct{} // each is closed when its task may run
	avgDuration    time.Duration   // moving average of the requests' durations
	nextFree       time.Time       // when the last task that was handed back to the store may run
	idleSince      time.Time       // when the last request ended
}

const (
	// startLimit is the limit of a new host.
	startLimit = 4
	// startDuration is the assumed duration of a host's first request.
	startDuration = 50 * time.Millisecond
	// minDelay and maxDelay bound the delay of a task that is handed back to the store.
	minDelay, maxDelay = 100 * time.Millisecond, 20 * time.Second
	// forgetAfter is how long a host that did not answer is remembered.
	forgetAfter = time.Minute
)

// beginRequest waits until a request to the host may start. The caller must then call
// endRequest after the request. If too many tasks already wait, or if ctx ends, ok is
// false: the caller must hand the task back to the store, with the returned delay.
func (s *hostLimiter) beginRequest(ctx context.Context, name string, concurrency int) (h *host, delay time.Duration, ok bool) {
	maxTasks := max(1, concurrency/2)
	if concurrency == 0 { // not called by a worker
		maxTasks = math.MaxInt
	}
	s.mu.Lock()
	h = s.hostByName[name]
	if h == nil {
		s.deleteIdleLocked()
		h = &host{limit: min(startLimit, s.maxLimit), avgDuration: startDuration}
		s.hostByName[name] = h
	}
	runningLimit := min(h.limit, maxTasks)
	switch {
	case h.running < runningLimit:
		h.running++
		s.mu.Unlock()
		return h, 0, true
	case len(h.waiting) >= runningLimit || h.running+len(h.waiting) >= maxTasks:
		delay = h.handBackDelayLocked(time.Now())
		s.mu.Unlock()
		return nil, delay, false
	}
	ready := make(chan struct{})
	h.waiting = append(h.waiting, ready)
	s.mu.Unlock()

	select {
	case <-ready:
		return h, 0, true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(h.waiting, ready); i >= 0 {
		h.waiting = slices.Delete(h.waiting, i, i+1)
	} else {
		// This task may run, but ctx has ended. Let another task run instead.
		s.endRequestLocked(name, h)
	}
	return nil, minDelay, false
}

// handBackDelayLocked returns the delay for a task that is handed back to the store. After
// the delay, the host has probably finished the requests of earlier tasks.
func (h *host) handBackDelayLocked(now time.Time) time.Duration {
	if soonest := now.Add(minDelay); h.nextFree.Before(soonest) {
		h.nextFree = soonest
	}
	h.nextFree = h.nextFree.Add(h.avgDuration / time.Duration(h.limit))
	if latest := now.Add(maxDelay); h.nextFree.After(latest) {
		h.nextFree = latest
		return maxDelay/2 + rand.N(maxDelay/2)
	}
	return h.nextFree.Sub(now)
}

// endRequest records that a request is over, how long it took, and whether the host
// answered.
func (s *hostLimiter) endRequest(name string, h *host, took time.Duration, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answered {
		h.limit = min(h.limit+1, s.maxLimit)
	} else {
		h.limit = max(h.limit/2, 1)
	}
	h.avgDuration += (took - h.avgDuration) / 8
	s.endRequestLocked(name, h)
}

func (s *hostLimiter) endRequestLocked(name string, h *host) {
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
		delete(s.hostByName, name)
	}
}

// deleteIdleLocked deletes hosts that were idle for longer than forgetAfter. It checks
// them only after the number of hosts has doubled.
func (s *hostLimiter) deleteIdleLocked() {
	if len(s.hostByName) < s.sweepSize {
		return
	}
	now := time.Now()
	for name, h := range s.hostByName {
		if h.running == 0 && now.Sub(h.idleSince) > forgetAfter {
			delete(s.hostByName, name)
		}
	}
	s.sweepSize = 2*len(s.hostByName) + 64
}
