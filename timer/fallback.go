package timer

import (
	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/timingwheel"
)

// A fallback is a Ticker whose period is too short for the wheel. It waits for a ticker of
// package time's, and is of a shard, whose lock guards it, and has an id, by which it is
// stopped and reset. It is not counted among the pending ones, and leaves the shard when it
// is stopped, or is handed back by Close.
type fallback struct {
	sh    *shard
	alarm clock.Alarm

	// All below is guarded by sh.mu.

	id       timingwheel.ID
	deadline int64
	p        payload
	tag      uint8
}

// fallbacks are those of a shard.
type fallbacks struct {
	byID map[timingwheel.ID]*fallback
	last uint64 // the number of the last one's id
}

// keepFallbackLocked makes f one of the shard's.
func (sh *shard) keepFallbackLocked(f *fallback) timingwheel.ID {
	fs := sh.fallbacks
	if fs == nil {
		fs = new(fallbacks)
		sh.fallbacks = fs
	}
	if fs.byID == nil {
		fs.byID = make(map[timingwheel.ID]*fallback)
	}
	fs.last++
	f.sh, f.id = sh, bucket.Foreign(fs.last)
	fs.byID[f.id] = f
	return f.id
}

// fallbackLocked returns the fallback of an id, or nil.
func (sh *shard) fallbackLocked(id timingwheel.ID) *fallback {
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
func (sh *shard) stopFallbackLocked(id timingwheel.ID) bool {
	f := sh.fallbackLocked(id)
	if f == nil {
		return false
	}
	f.leaveLocked()
	f.alarm.Stop()
	return true
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
