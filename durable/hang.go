package durable

import (
	"bytes"
	"fmt"
	"runtime"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// A handler hangs if it does not return although its timeout is over. The Worker logs it
// once, with its stack, and counts it in its Stats. After another timeout the Worker gives
// the handler's place again, so that handlers that hang do not stop it. Each place is given
// again at most once. Limits of the handler still count it.

// hangGrace is how long a handler may take to return after its timeout before it hangs.
const hangGrace = time.Second

// A hangState says whether an attempt's handler hangs. It is guarded by places.mu.
type hangState struct {
	returned   bool // the handler has returned
	hangs      bool
	placeGiven bool            // its place was given again
	timers     [2]timer.Handle // for reportHang and givePlaceAgain
}

// watchForHang runs when the handler's context has ended, whatever ended it.
func (a *attempt) watchForHang() {
	w, p := a.loop.w, a.loop.places
	untilTimeout := min(max(0, a.timeoutAt.Sub(w.now())), store.MaxDelay/2)
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.hang.returned {
		return
	}
	a.hang.timers[0], _ = w.timers.Start(untilTimeout+hangGrace, a.reportHang)
	a.hang.timers[1], _ = w.timers.Start(untilTimeout+min(a.timeout(), store.MaxDelay/2), a.givePlaceAgain)
}

func (a *attempt) reportHang() {
	p := a.loop.places
	p.mu.Lock()
	hangs := !a.hang.returned
	if hangs {
		a.hang.hangs = true
		p.hangingHandlers++
	}
	p.mu.Unlock()
	if hangs {
		a.loop.w.client.log.Error("durable: a handler does not return after its timeout", "handler", a.task.Handler,
			"key", printableKey(a.task.Key), "timeout", a.timeout(), "stack", a.stack())
	}
}

func (a *attempt) givePlaceAgain() {
	p := a.loop.places
	now := p.w.now()
	p.mu.Lock()
	defer p.unlockAndNotify(now)
	if a.hang.returned || p.runEnded || p.placesGiven >= p.w.config.concurrency {
		return
	}
	a.hang.placeGiven = true
	p.placesGiven++
	p.totalPlaces++
	p.addFreePlacesLocked(1)
}

// endHangLocked is called when the handler has returned. It reports whether its place is
// free now.
func (p *placePool) endHangLocked(a *attempt) (placeIsFree bool) {
	a.hang.returned = true
	for _, t := range a.hang.timers {
		t.Stop()
	}
	if a.hang.hangs {
		p.hangingHandlers--
	}
	if !a.hang.placeGiven {
		return true
	}
	p.placesGiven--
	p.totalPlaces--
	return false
}

// stack returns the stack of the attempt's goroutine. The runtime can only return all
// stacks, so stack looks for the one with a call of the attempt's method runHandler.
func (a *attempt) stack() string {
	const maxSize = 64 << 20
	stacks := make([]byte, 1<<20)
	for {
		n := runtime.Stack(stacks, true)
		if n < len(stacks) || n >= maxSize {
			stacks = stacks[:n]
			break
		}
		stacks = make([]byte, 4*len(stacks))
	}
	frame := fmt.Appendf(nil, "durable.(*attempt).runHandler(%p", a)
	for goroutine := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		if bytes.Contains(goroutine, frame) {
			return string(goroutine)
		}
	}
	return "(not found)"
}
