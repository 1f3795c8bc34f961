package timer

import (
	"time"

	"github.com/tickless/tickless/timingwheel"
)

// A Ticker sends the time on C at intervals, as [time.Ticker] does. Make one with
// NewTicker. Two things differ from time.Ticker: C has a buffer of one, which len and cap
// report. A Ticker is not garbage before it is stopped.
type Ticker struct {
	C <-chan time.Time

	// sh is the Ticker's shard, set once. It is nil in a zero Ticker, and in one that
	// uses stdTicker.
	sh        *shard
	stdTicker *time.Ticker
	c         chan time.Time

	// sh.mu guards the fields below.

	id         timingwheel.ID
	period     time.Duration
	nextTickAt int64
}

// NewTicker returns a Ticker that sends the current time on its channel every d. It
// panics if d is not positive.
//
// If d is less than a millisecond and less than the Scheduler's tick, the Ticker uses
// package time, unless it has slack or there is a [WithClock]. After Close, a new Ticker
// uses package time too, or the given clock. [Stats] counts both in FellBack.
func (s *Scheduler) NewTicker(d time.Duration) *Ticker {
	mustBePositive("NewTicker", d)
	return s.newTicker(s.now(), d)
}

func (s *Scheduler) newTicker(now int64, d time.Duration) *Ticker {
	c := make(chan time.Time, 1)
	t := &Ticker{C: c, c: c}
	t.sh = s.lockShard()
	t.startLocked(now, d)
	t.sh.unlock()
	return t
}

// Tick is NewTicker(d).C, or nil if d is not positive. The ticker ticks until the
// Scheduler is closed.
func (s *Scheduler) Tick(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return s.NewTicker(d).C
}

// Stop turns the Ticker off. After Stop no earlier tick is received. Stop does not close
// the channel.
func (t *Ticker) Stop() {
	if t.sh == nil {
		if t.stdTicker != nil {
			t.stdTicker.Stop()
		}
		return
	}
	t.sh.mu.Lock()
	t.sh.stopLocked(t.id)
	removeSentValue(t.c)
	t.sh.unlock()
}

// Reset stops the Ticker and starts it again with the period d. The next tick comes after
// d. Reset panics if d is not positive, or if the Ticker was not made by NewTicker.
func (t *Ticker) Reset(d time.Duration) {
	mustBePositive("Ticker.Reset", d)
	if t.sh == nil {
		if t.stdTicker == nil {
			panic("timer: Reset called on uninitialized Ticker")
		}
		t.stdTicker.Reset(d)
		return
	}
	now := t.sh.s.now()
	t.sh.mu.Lock()
	t.startLocked(now, d)
	t.sh.unlock()
}

// startLocked starts the Ticker, or changes its period. If two Resets race, the last one
// to get the lock sets both period and phase.
func (t *Ticker) startLocked(now int64, d time.Duration) {
	sh := t.sh
	removeSentValue(t.c)
	t.period, t.nextTickAt = d, deadlineAfter(now, d)
	if sh.s.isTooShort(d) || sh.s.closed.Load() {
		sh.stopLocked(t.id)
		t.id = sh.startFallbackLocked(d, tickerPayload(t), tagTicker)
		return
	}
	if sh.resetLocked(now, t.id, d, sh.slackFor(d)) {
		return
	}
	sh.stopFallbackLocked(t.id)
	if id, _ := sh.startLocked(now, d, sh.slackFor(d), tickerPayload(t), tagTicker); id != (timingwheel.ID{}) {
		t.id = id // otherwise it has fired at once and started itself again
	}
}

// isTooShort reports whether a period is too short for the wheel, which fires at most
// once a tick. A period of a millisecond or more is never too short.
func (s *Scheduler) isTooShort(period time.Duration) bool {
	return s.usesSystemClock && period < min(s.config.tick, time.Millisecond) && s.config.slack.forDelay(period) == 0
}

// tickLocked sends the time and starts the next tick. The Ticker has already left the
// wheel, and is counted as fired.
func (t *Ticker) tickLocked(at moment) {
	sendTime(t.c, at.time)
	t.nextTickAt = nextTickAfter(t.nextTickAt, t.period, at.nanos)
	t.id = t.sh.restartTickerLocked(at.nanos, t.nextTickAt, t)
}

// nextTickAfter returns the first time after now that is one or more periods after last.
func nextTickAfter(last int64, period time.Duration, now int64) int64 {
	if missed := (now - last) / int64(period); missed > 0 {
		last += missed * int64(period)
	}
	return deadlineAfter(last, period)
}

func mustBePositive(what string, d time.Duration) {
	if d <= 0 {
		panic("timer: non-positive interval for " + what)
	}
}
