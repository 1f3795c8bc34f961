package timer

import (
	"time"

	"github.com/tickless/tickless/timingwheel"
)

// A Ticker sends the time on C at intervals, as [time.Ticker] does: it drops
// ticks to make up for slow receivers, and keeps its phase. Make one with
// NewTicker.
//
// There are two differences from time.Ticker: C has a buffer of one, which len and
// cap report, and a Ticker that is not stopped is never garbage.
type Ticker struct {
	C <-chan time.Time

	// sh is the home shard, fixed when the Ticker is made. It is nil for one that was
	// made in a bubble by the package-level NewTicker, which is inner, and for the zero
	// Ticker.
	sh    *shard
	inner *time.Ticker
	c     chan time.Time

	// All below is guarded by sh.mu.

	id     timingwheel.ID
	period time.Duration
	next   int64
}

// NewTicker makes a Ticker that sends the current time on its channel every d,
// the first time after d. It panics if d is not positive. On a closed Scheduler it falls
// back: see [Scheduler.Close].
//
// If d is less than a millisecond and less than the Scheduler's tick, and the Scheduler
// uses the system's clock and has no slack, the Ticker waits for a timer of package time,
// and counts in Stats as fallen back.
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

// Tick is NewTicker(d).C, or nil if d is not positive. The ticker ticks until the Scheduler
// is closed.
func (s *Scheduler) Tick(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return s.NewTicker(d).C
}

// Stop turns the Ticker off. No tick from before is received after it. It does
// not close the channel.
func (t *Ticker) Stop() {
	if t.sh == nil {
		if t.inner != nil {
			t.inner.Stop()
		}
		return
	}
	t.sh.mu.Lock()
	t.sh.stopLocked(t.id)
	withdraw(t.c)
	t.sh.unlock()
}

// Reset stops the Ticker and starts it with the period d; the next tick comes
// after d. It panics if d is not positive, or if the Ticker was not made by
// NewTicker. With a d below the Scheduler's tick, or on a closed Scheduler, the Ticker
// falls back where [Scheduler.NewTicker] does.
func (t *Ticker) Reset(d time.Duration) {
	mustBePositive("Ticker.Reset", d)
	if t.sh == nil {
		if t.inner == nil {
			panic("timer: Reset called on uninitialized Ticker")
		}
		t.inner.Reset(d)
		return
	}
	now, away := t.sh.s.nowOrAway()
	t.sh.mu.Lock()
	if away {
		t.sh.stopLocked(t.id)
		t.fallBackLocked(d, true)
	} else {
		t.startLocked(now, d)
	}
	t.sh.unlock()
}

// startLocked starts the ticks, or gives them another period. Of two Resets that race
// the one that comes last here decides on period and phase both.
func (t *Ticker) startLocked(now int64, d time.Duration) {
	sh := t.sh
	if sh.s.tooFine(d) || sh.s.closed.Load() {
		sh.stopLocked(t.id)
		t.fallBackLocked(d, false)
		return
	}
	withdraw(t.c)
	t.period, t.next = d, deadlineAfter(now, d)
	if sh.resetLocked(now, t.id, d, sh.slackOf(d)) {
		return
	}
	sh.stopFallbackLocked(t.id)
	if id, _ := sh.startLocked(now, d, sh.slackOf(d), tickerPayload(t), tagTicker); id != (timingwheel.ID{}) {
		t.id = id // else it has fired at once, and started itself again
	}
}

func (t *Ticker) fallBackLocked(d time.Duration, visits bool) {
	withdraw(t.c)
	t.period = d
	t.id = t.sh.fallBackLocked(d, tickerPayload(t), tagTicker, visits)
}

// tooFine reports whether a Ticker's period is too short for the wheel, on which it
// would tick once a tick. From a millisecond on the Scheduler's tick decides, which is
// the user's choice.
func (s *Scheduler) tooFine(period time.Duration) bool {
	return s.system && period < min(s.config.tick, time.Millisecond) && s.config.slack.of(period) == 0
}

// tickLocked is called once the Ticker has been taken out of the wheel, and counted as fired.
func (t *Ticker) tickLocked(at moment) {
	sendTime(t.c, at.time)
	t.next = nextInPhase(t.next, t.period, at.now)
	t.id = t.sh.rearmLocked(at.now, t.next, t)
}

// nextInPhase returns the first of the moments last+period, last+2*period...
// that is after now.
func nextInPhase(last int64, period time.Duration, now int64) int64 {
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
