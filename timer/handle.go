package timer

import (
	"time"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/timingwheel"
)

// A Handle names one timer that [Scheduler.Start] started. It is a small comparable
// value that may be kept and copied freely. Once its timer has fired or was stopped,
// it does nothing, for ever: it never touches another timer. The zero Handle names no
// timer.
type Handle struct {
	home *home
	word uint64 // of the timer's id, packed
}

// home is where a timer lives, as far as many timers have it in common: its shard,
// and the rest of its packed id. So a Handle is two words.
//
// The garbage collector comes by once for every Handle that is kept. As of Go 1.26
// it is faster with pointers to objects of up to 512 bytes than with others, so a
// shard, in which most Handles' home lies, is no larger: BenchmarkHeld.
type home struct {
	sh   *shard
	rest uint32
}

// id returns what the shard knows the timer by.
func (h Handle) id() timingwheel.ID { return bucket.Unpack(h.word, h.home.rest) }

// Stop keeps the timer from firing. It reports true if the callback will never run
// because of this call, and false if there was nothing to stop: the timer has fired,
// was stopped before, or was handed back by Close. It does not wait for a callback
// that is running. O(1).
func (h Handle) Stop() bool {
	if h.home == nil {
		return false
	}
	sh := h.home.sh
	sh.mu.Lock()
	ok := sh.stopLocked(h.id())
	sh.unlock()
	return ok
}

// Reset makes the pending timer fire after d from now instead, at once if d is
// zero or less. It reports false, and does nothing, if the timer has fired, was
// stopped, or was handed back by Close. O(1); moving a timer later costs less
// than stopping it and starting another.
//
// The timer's slack is then the Scheduler's: see [WithSlack].
func (h Handle) Reset(d time.Duration) bool {
	if h.home == nil {
		return false
	}
	return h.reset(d, h.home.sh.s.config.slack.of(d))
}

// ResetWithin is Reset for a timer that may fire as late as slack after d: see
// [WithSlack]. A slack of zero or less is none, whatever the Scheduler's is.
func (h Handle) ResetWithin(d, slack time.Duration) bool {
	if h.home == nil {
		return false
	}
	return h.reset(d, slack)
}

func (h Handle) reset(d, slack time.Duration) bool {
	sh := h.home.sh
	now := sh.s.now()
	sh.mu.Lock()
	ok := sh.resetWithinLocked(now, h.id(), d, slack)
	sh.unlock()
	return ok
}

// handle takes the lock for handleLocked.
func (sh *shard) handle(id timingwheel.ID) Handle {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.handleLocked(id)
}

// handleLocked returns the Handle of a timer of the shard.
func (sh *shard) handleLocked(id timingwheel.ID) Handle {
	word, rest := id.Pack()
	if rest == 0 {
		return Handle{&sh.firstHome, word}
	}
	if int(rest) > len(sh.moreHomes) {
		sh.addHomesLocked(rest)
	}
	return Handle{sh.moreHomes[rest-1], word}
}

// addHomesLocked makes homes up to that of a rest.
func (sh *shard) addHomesLocked(rest uint32) {
	for n := len(sh.moreHomes); n < int(rest); n++ {
		sh.moreHomes = append(sh.moreHomes, &home{sh, uint32(n) + 1})
	}
}
