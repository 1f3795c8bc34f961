package timer

import "time"

// tooFine reports whether a Ticker's period is too short for the wheel, on which it
// would tick once a tick. From a millisecond on the Scheduler's tick decides, which is
// the user's choice.
func (s *Scheduler) tooFine(period time.Duration) bool {
	return s.system && period < min(s.config.tick, time.Millisecond) && s.config.slack.of(period) == 0
}

// newFineTicker makes a Ticker that is one of package time's, channel and all: who
// receives from that finds a tick that is due even before the runtime has sent it, and
// so gets very many a second. To the Scheduler it is a fallback.
func (s *Scheduler) newFineTicker(now int64, d time.Duration) *Ticker {
	inner := time.NewTicker(d)
	t := &Ticker{C: inner.C, inner: inner, sh: s.lockShard()}
	t.owner = t
	t.startFineLocked(now, d)
	t.sh.unlock()
	return t
}

// startFineLocked starts the ticks, or gives them another period.
func (t *Ticker) startFineLocked(now int64, d time.Duration) {
	sh := t.sh
	if sh.s.closed.Load() {
		sh.n.rejected++
		t.inner.Stop()
		return
	}
	t.inner.Reset(d)
	deadline := deadlineAfter(now, d)
	if f := sh.fallbackLocked(t.id); f != nil {
		f.deadline = deadline
		return
	}
	sh.n.started++
	sh.n.fellBack++
	t.id = sh.keepFallbackLocked(&fallback{
		alarm: fineAlarm{t.inner}, deadline: deadline, p: nodePayload(&t.node), tag: tagNode,
	})
}

// A fineAlarm is the ticker that a fallback waits for. It rings by itself.
type fineAlarm struct{ *time.Ticker }
