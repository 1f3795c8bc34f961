package timer

import (
	"time"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/timingwheel"
)

// A fallback is a Timer or a Ticker that is not on the wheel but waits for an alarm of the
// clock's own:
//
//   - a Ticker whose period is too short for the wheel;
//   - one that is started on a closed Scheduler: were it not to fire, whoever waits for it
//     at shutdown would wait for ever;
//   - one of the default Scheduler's that is reset inside a testing/synctest bubble, whose
//     clock the Scheduler does not follow.
//
// It is of a shard, whose lock guards it, and has an id, by which it is stopped and reset. It
// is not counted among the pending ones, and leaves the shard when it fires, is stopped, or is
// handed back by Close.
type fallback struct {
	sh    *shard
	id    timingwheel.ID
	clock clock.Clock
	alarm clock.Alarm
	// visits: the alarm is a bubble's. Nobody may touch it from elsewhere, so it is left to
	// ring: for a fallback that has left the shard it does nothing.
	visits bool
	at     time.Time // on clock
	p      payload
	tag    uint8
}

// fallbacks are those of a shard.
type fallbacks struct {
	byID map[timingwheel.ID]*fallback
	last uint64 // the number of the last one's id
}

// fallBackLocked starts a timer as a fallback. visits: on the clock of the bubble that the
// caller is in, and not on the Scheduler's.
func (sh *shard) fallBackLocked(d time.Duration, p payload, tag uint8, visits bool) timingwheel.ID {
	fs := &sh.fallbacks
	if fs.byID == nil {
		fs.byID = make(map[timingwheel.ID]*fallback)
	}
	sh.n.started++
	sh.n.fellBack++
	fs.last++
	f := &fallback{sh: sh, id: bucket.Foreign(fs.last), clock: sh.s.clock, visits: visits, p: p, tag: tag}
	if visits {
		f.clock = clock.System()
	}
	fs.byID[f.id] = f
	f.alarm = f.clock.NewAlarm(f.ring)
	now := f.clock.Now()
	f.setLocked(now, now.Add(d))
	return f.id
}

func (f *fallback) setLocked(now, at time.Time) {
	f.at = at
	clock.ResetAt(f.alarm, now, at)
}

// ring is the alarm's function. What it has to do was decided otherwise if f is no longer
// the shard's.
func (f *fallback) ring() {
	if f.ringLocked() {
		f.sh.s.dispatch.runAlone(f.p.fn())
	}
}

// ringLocked reports whether there is a callback to be run.
func (f *fallback) ringLocked() bool {
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	if f.sh.fallbacks.byID[f.id] != f {
		return false
	}
	now := f.clock.Now()
	if now.Before(f.at) { // it was moved just as it rang
		f.setLocked(now, f.at)
		return false
	}
	if f.tag == tagTicker {
		t := f.p.ticker()
		sendTime(t.c, now)
		f.setLocked(now, f.at.Add((now.Sub(f.at)/t.period+1)*t.period))
		return false
	}
	f.leaveLocked()
	if f.tag == tagChan {
		sendTime(f.p.channel(), now)
	}
	return f.tag == tagFunc
}

func (f *fallback) leaveLocked() {
	fs := &f.sh.fallbacks
	delete(fs.byID, f.id)
	if len(fs.byID) == 0 {
		fs.byID = nil // maps do not shrink
	}
	if !f.visits {
		f.alarm.Stop()
	}
}

// stopFallbackLocked takes a fallback out. It reports false if there is none of
// that id.
func (sh *shard) stopFallbackLocked(id timingwheel.ID) bool {
	f := sh.fallbacks.byID[id]
	if f == nil {
		return false
	}
	f.leaveLocked()
	return true
}

// takeFallbacksLocked returns all fallbacks, which leave the shard: none of them
// will fire.
func (sh *shard) takeFallbacksLocked() []*fallback {
	fs := make([]*fallback, 0, len(sh.fallbacks.byID))
	for _, f := range sh.fallbacks.byID {
		f.leaveLocked()
		fs = append(fs, f)
	}
	return fs
}
