package timer

import (
	"time"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/timingwheel"
)

// A fallback is a Timer or Ticker that uses an alarm of its own instead of the wheel:
//
//   - a Ticker whose period is too short for the wheel;
//   - a Timer or Ticker that is started on a closed Scheduler.
//
// The shard's lock guards a fallback. It is not counted as pending.
type fallback struct {
	sh      *shard
	id      timingwheel.ID
	alarm   clock.Alarm
	dueAt   time.Time // when the timer fires, by the Scheduler's clock
	payload payload
	tag     uint8
}

type fallbacks struct {
	byID         map[timingwheel.ID]*fallback
	lastIDNumber uint64 // the number in the id of the newest fallback
}

// startFallbackLocked starts a timer that uses its own alarm instead of the wheel: see
// fallback. It returns the timer's id.
func (sh *shard) startFallbackLocked(d time.Duration, p payload, tag uint8) timingwheel.ID {
	fs := &sh.fallbacks
	if fs.byID == nil {
		fs.byID = make(map[timingwheel.ID]*fallback)
	}
	sh.counts.started++
	sh.counts.fellBack++
	fs.lastIDNumber++
	f := &fallback{sh: sh, id: bucket.Foreign(fs.lastIDNumber), payload: p, tag: tag}
	fs.byID[f.id] = f
	f.alarm = sh.s.clock.NewAlarm(f.onAlarm)
	now := sh.s.clock.Now()
	f.setAlarmLocked(now, now.Add(d))
	return f.id
}

func (f *fallback) setAlarmLocked(now, dueAt time.Time) {
	f.dueAt = dueAt
	clock.ResetAt(f.alarm, now, dueAt)
}

// onAlarm is the alarm's function. It does nothing if f was removed from the shard.
func (f *fallback) onAlarm() {
	if f.lockAndHandleAlarm() {
		f.sh.s.dispatcher.runWithoutExecutor(f.payload.callback())
	}
}

// lockAndHandleAlarm locks the shard and handles the alarm. It reports whether onAlarm
// must then run the callback.
func (f *fallback) lockAndHandleAlarm() bool {
	f.sh.mu.Lock()
	defer f.sh.mu.Unlock()
	if f.sh.fallbacks.byID[f.id] != f {
		return false
	}
	now := f.sh.s.clock.Now()
	if now.Before(f.dueAt) { // the alarm was already going off when f was reset
		f.setAlarmLocked(now, f.dueAt)
		return false
	}
	if f.tag == tagTicker {
		t := f.payload.ticker()
		sendTime(t.c, now)
		f.setAlarmLocked(now, f.dueAt.Add((now.Sub(f.dueAt)/t.period+1)*t.period))
		return false
	}
	f.removeLocked()
	if f.tag == tagChan {
		sendTime(f.payload.channel(), now)
	}
	return f.tag == tagFunc
}

func (f *fallback) removeLocked() {
	fs := &f.sh.fallbacks
	delete(fs.byID, f.id)
	if len(fs.byID) == 0 {
		fs.byID = nil // maps do not shrink
	}
	f.alarm.Stop()
}

// stopFallbackLocked removes a fallback. It reports false if there is none with that id.
func (sh *shard) stopFallbackLocked(id timingwheel.ID) bool {
	f := sh.fallbacks.byID[id]
	if f == nil {
		return false
	}
	f.removeLocked()
	return true
}

// stopFallbackTickersLocked stops the shard's Tickers that do not use the wheel. Timers may
// be there already, because starts fall back as soon as Close has begun: they will fire.
func (sh *shard) stopFallbackTickersLocked() {
	for _, f := range sh.fallbacks.byID {
		if f.tag == tagTicker {
			f.removeLocked()
		}
	}
}
