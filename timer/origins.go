package timer

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"

	"github.com/tickless/tickless/internal/wheel"
)

// WithOrigins notes where one of oneIn timers was started, for [PendingTimer.Origin].
// It is for finding out who starts timers that nobody stops. A note takes about a
// microsecond, and 90 bytes for as long as the timer is pending. Tickers and Jobs have
// one until they first fire. The default is none. WithOrigins panics unless oneIn is positive.
func WithOrigins(oneIn int) Option {
	if oneIn < 1 {
		panic(fmt.Sprintf("timer: WithOrigins: one in how many must be positive, got %d", oneIn))
	}
	return option(func(c *config) { c.origins = min(oneIn, mostOneIn) })
}

// mostOneIn is the largest oneIn of which noteLocked can take the double in 32 bits.
const mostOneIn = 1<<30 - 1

// originDepth is how many frames are noted: those of this package, and the first of
// others.
const originDepth = 8

// origins are the notes of where timers were started, by shard; each shard's are
// guarded by its lock.
type origins struct {
	oneIn  int
	shards []shardOrigins
}

type shardOrigins struct {
	skip  int // starts until the next note
	notes []originNote
	hand  int // the note to look at next
}

type originNote struct {
	id wheel.ID
	at *[originDepth]uintptr
}

func newOrigins(oneIn, shards int) *origins {
	if oneIn == 0 {
		return nil
	}
	return &origins{oneIn: oneIn, shards: make([]shardOrigins, shards)}
}

// noteLocked notes who has started a timer, if its turn has come.
func (o *origins) noteLocked(sh *shard, id wheel.ID) {
	so := &o.shards[sh.index]
	if so.skip > 0 {
		so.skip--
		return
	}
	// At random, oneIn on the average: starts may come in a pattern.
	so.skip = rand.IntN(2*o.oneIn - 1)
	// For each note that comes a few old ones are looked at, whether their timers are
	// still pending: so those of timers that are gone are never more than a third.
	for range min(4, len(so.notes)) {
		so.hand++
		if so.hand >= len(so.notes) {
			so.hand = 0
		}
		if !sh.wheel.Contains(so.notes[so.hand].id) {
			last := len(so.notes) - 1
			so.notes[so.hand] = so.notes[last]
			so.notes[last] = originNote{}
			so.notes = so.notes[:last]
		}
	}
	if cap(so.notes) > 1024 && len(so.notes) < cap(so.notes)/4 {
		so.notes = append(make([]originNote, 0, 2*len(so.notes)), so.notes...)
	}
	at := new([originDepth]uintptr)
	runtime.Callers(3, at[:])
	so.notes = append(so.notes, originNote{id, at})
}

// of returns a shard's notes by timer.
func (o *origins) of(sh *shard) map[wheel.ID]*[originDepth]uintptr {
	if o == nil {
		return nil
	}
	const perHold = 4096
	by := make(map[wheel.ID]*[originDepth]uintptr)
	some := make([]originNote, perHold)
	for from := 0; ; {
		sh.mu.Lock()
		n := copy(some, o.shards[sh.index].notes[min(from, len(o.shards[sh.index].notes)):])
		sh.mu.Unlock()
		if n == 0 {
			return by
		}
		for _, note := range some[:n] {
			by[note.id] = note.at
		}
		from += n
	}
}

// originFrame returns the first frame outside of this package, or the function of this
// package that a go statement has called.
func originFrame(pcs []uintptr) runtime.Frame {
	n := 0
	for n < len(pcs) && pcs[n] != 0 {
		n++
	}
	frames := runtime.CallersFrames(pcs[:n])
	var ours runtime.Frame
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "" || f.Function == "runtime.goexit":
			return ours
		case !strings.HasPrefix(f.Function, packagePath) || !more:
			return f
		}
		ours = f
	}
}

// packagePath is what the names of this package's functions begin with.
const packagePath = "github.com/tickless/tickless/timer."
