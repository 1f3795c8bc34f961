package timer

import (
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/slab"
	"github.com/tickless/tickless/internal/wheel"
)

// A fallback is a timer for which there was no room among the pending ones, but
// whose start cannot fail: a Timer, a Ticker or a Sleep; or a Ticker whose
// period is too short for the wheel. It waits for an
// alarm of the clock's own, which on the system's is a timer of package time's, and
// otherwise does what a pending timer does: it is of a shard, whose lock guards it,
// and has an id, by which it is stopped and reset. It is not counted among the
// pending ones, and leaves the shard when it fires, is stopped, or is handed back
// by Close.
type fallback struct {
	sh    *shard
	alarm clock.Alarm

	// All below is guarded by sh.mu.

	id       wheel.ID
	deadline int64
	p        payload
	tag      uint8
}

// fallbacks are those of a shard.
type fallbacks struct {
	byID map[wheel.ID]*fallback
	last uint64 // the number of the last one's id
	// firing: one of them is being fired. A node that starts again meanwhile
	// becomes another of them.
	firing bool
}

// placeLocked starts a timer whose home this is, and which must be started: it falls
// back if there is no room. It keeps the timer's id in *id unless it fired at once,
// and perhaps started itself again. The error is ErrClosed.
func (sh *shard) placeLocked(now int64, id *wheel.ID, d time.Duration, p payload, tag uint8) error {
	i, err := sh.startLocked(now, d, p, tag)
	if err == ErrTooManyPending {
		sh.n.rejected-- // it is not
		sh.n.rejectedFull--
	}
	// If the error is errGather there was no room a moment ago: see settleLocked.
	if err == ErrTooManyPending || err == errGather {
		i, err = sh.fallBackLocked(now, d, p, tag), nil
	}
	if i != (wheel.ID{}) {
		*id = i
	}
	return err
}

// settleLocked makes sure that the start which follows, in the same critical section,
// knows whether there is room. It reports false, and has changed nothing, if that
// takes a gathering: then the caller unlocks the shard, calls gather, and does all
// again, since others may have come in between.
func (sh *shard) settleLocked(d time.Duration, tag uint8) bool {
	l := sh.s.limit
	return l == nil || !sh.takesRoom(d, tag) || sh.s.closed.Load() || l.fillLocked(sh) != errGather
}

// fallBackLocked starts a timer for which there is no room.
func (sh *shard) fallBackLocked(now int64, d time.Duration, p payload, tag uint8) wheel.ID {
	sh.n.started++
	sh.n.fellBack++
	if d <= 0 {
		sh.fireFallbackLocked(p, tag)
		return wheel.ID{}
	}
	return sh.addFallbackLocked(now, deadlineAfter(now, d), p, tag)
}

func (sh *shard) addFallbackLocked(now, deadline int64, p payload, tag uint8) wheel.ID {
	f := &fallback{deadline: deadline, p: p, tag: tag}
	f.alarm = sh.s.clock.NewAlarm(f.ring)
	id := sh.keepFallbackLocked(f)
	sh.s.setAlarm(f.alarm, now, deadline)
	return id
}

// keepFallbackLocked makes f one of the shard's.
func (sh *shard) keepFallbackLocked(f *fallback) wheel.ID {
	fs := sh.fallbacks
	if fs == nil {
		fs = new(fallbacks)
		sh.fallbacks = fs
	}
	if fs.byID == nil {
		fs.byID = make(map[wheel.ID]*fallback)
	}
	fs.last++
	f.sh, f.id = sh, slab.Foreign(fs.last)
	fs.byID[f.id] = f
	return f.id
}

// ring is the alarm's function. What it has to do, all of it under the lock, was
// decided otherwise if f is no longer the shard's.
func (f *fallback) ring() {
	sh := f.sh
	sh.mu.Lock()
	defer sh.unlock()
	if sh.fallbackLocked(f.id) != f {
		return
	}
	if now := sh.s.now(); now < f.deadline {
		sh.s.setAlarm(f.alarm, now, f.deadline)
		return
	}
	f.leaveLocked()
	sh.fireFallbackLocked(f.p, f.tag)
}

// fallbackLocked returns the fallback of an id, or nil.
func (sh *shard) fallbackLocked(id wheel.ID) *fallback {
	if sh.fallbacks == nil {
		return nil
	}
	return sh.fallbacks.byID[id]
}

func (f *fallback) leaveLocked() {
	fs := f.sh.fallbacks
	delete(fs.byID, f.id)
	if len(fs.byID) == 0 {
		fs.byID = nil // maps do not shrink
	}
}

// stopFallbackLocked takes a fallback out. It reports false if there is none of
// that id.
func (sh *shard) stopFallbackLocked(id wheel.ID) bool {
	f := sh.fallbackLocked(id)
	if f == nil {
		return false
	}
	f.leaveLocked()
	f.alarm.Stop()
	return true
}

// fireFallbackLocked fires a fallback that has left.
func (sh *shard) fireFallbackLocked(p payload, tag uint8) {
	if sh.fallbacks == nil {
		sh.fallbacks = new(fallbacks)
	}
	var at moment
	if tag != tagFunc {
		at = sh.s.moment()
	}
	sh.fallbacks.firing = true
	f, ok := sh.expireLocked(p, tag, at)
	sh.fallbacks.firing = false
	if ok {
		sh.s.dispatch.submitDueLocked(sh, f)
	}
}

// takeFallbacksLocked returns all fallbacks, which leave the shard: none of them
// will fire.
func (sh *shard) takeFallbacksLocked() []*fallback {
	if sh.fallbacks == nil {
		return nil
	}
	fs := make([]*fallback, 0, len(sh.fallbacks.byID))
	for _, f := range sh.fallbacks.byID {
		f.alarm.Stop()
		fs = append(fs, f)
	}
	sh.fallbacks.byID = nil
	return fs
}
