package timer

import (
	"iter"
	"math/rand/v2"
	"runtime"
	"time"
	"unsafe"

	"github.com/tickless/tickless/internal/wheel"
)

// A Kind says what a pending timer is for.
type Kind string

// The kinds of timers.
const (
	KindFunc     Kind = "func"     // of Start or AfterFunc: Function says which
	KindChannel  Kind = "channel"  // of NewTimer or After
	KindTicker   Kind = "ticker"   // of NewTicker or Tick
	KindJob      Kind = "job"      // of Every or Repeat
	KindKeyed    Kind = "keyed"    // of a Keyed
	KindContext  Kind = "context"  // of WithTimeout or WithDeadline, once somebody waits
	KindDeadline Kind = "deadline" // of a Deadline, once somebody waits
	KindSleep    Kind = "sleep"    // of Sleep
)

// A PendingTimer describes a timer that is pending.
type PendingTimer struct {
	// Due is when it is to fire: its deadline, with its slack.
	Due  time.Time
	Kind Kind

	pc     uintptr
	origin *[originDepth]uintptr
}

// Function returns the name of the callback's function, as package runtime gives it,
// or "" for a timer without a callback.
func (p PendingTimer) Function() string { return functionName(p.pc) }

func functionName(pc uintptr) string {
	if pc == 0 {
		return ""
	}
	if f := runtime.FuncForPC(pc); f != nil {
		return f.Name()
	}
	return "unknown"
}

// Origin returns the function, the file and the line that started the timer, the
// first outside of this package. It reports false unless [WithOrigins] has chosen the
// timer.
func (p PendingTimer) Origin() (runtime.Frame, bool) {
	if p.origin == nil {
		return runtime.Frame{}, false
	}
	return originFrame(p.origin[:]), true
}

// pendingPlaces is how many places of a shard's wheel are looked at in one hold of
// its lock.
const pendingPlaces = 512

// PendingTimers returns the timers that are pending, in no order, without those that
// have fallen back to package time. A timer that is started, stopped or moved
// meanwhile may be missing, and a ticker may come twice. No lock is held while the
// loop's body runs, and none for longer than it takes to look at 512 timers. O(n).
func (s *Scheduler) PendingTimers() iter.Seq[PendingTimer] {
	return func(yield func(PendingTimer) bool) {
		batch := make([]PendingTimer, 0, pendingPlaces)
		for sh := range s.shards.made() {
			origins := s.origins.of(sh)
			more := true
			for place := uint64(0); more; {
				batch = batch[:0]
				place, more = sh.scan(place, func(e wheel.Entry[payload]) {
					batch = append(batch, s.describe(e, origins))
				})
				for _, p := range batch {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
}

// SamplePending returns n of the pending timers, chosen at random and in no order, or
// all if there are no more: what most of very many are can be seen in a few
// thousands. One may be there twice if n is less than a quarter of what is pending; there
// may be fewer if others start and stop meanwhile, or where few are left of very many. It
// does not hold a lock for longer than PendingTimers does. O(n + shards).
func (s *Scheduler) SamplePending(n int) []PendingTimer {
	var out []PendingTimer
	s.sample(n, func(sh *shard) func(wheel.Sample) {
		origins := s.origins.of(sh)
		return func(x wheel.Sample) {
			if e, ok := sh.wheel.At(x.Place); ok && isLive(&e) {
				out = append(out, s.describe(e, origins))
			}
		}
	})
	return out
}

// sample calls what visit returns for a shard with n of all pending timers, chosen at
// random, or with all if there are no more, under the shard's lock. It returns how
// many timers there are, and how many it has chosen.
func (s *Scheduler) sample(n int, visit func(sh *shard) func(wheel.Sample)) (total, chosen int) {
	total = s.Len()
	var room []wheel.Sample
	// Shares of n are rounded so that they add up to n, and that small shards count as
	// much as they should: systematic sampling, with a random start.
	sum := rand.Float64()
	for sh := range s.shards.made() {
		f := visit(sh)
		counted := func(x wheel.Sample) {
			chosen++
			f(x)
		}
		if total <= n {
			sh.scanAll(counted)
			continue
		}
		sh.mu.Lock()
		size := sh.lenLocked()
		sh.mu.Unlock()
		before := int(sum)
		sum += float64(n) * float64(size) / float64(total)
		if room == nil {
			room = make([]wheel.Sample, pendingPlaces)
		}
		sh.sample(int(sum)-before, size, room, counted)
	}
	return total, chosen
}

// isLive has an entry of a Timer be what it stands for, or reports false if that is
// dead. The shard is locked.
func isLive(e *wheel.Entry[payload]) bool {
	return e.Tag != tagEntry || e.Value.entry().pending(&e.Expired)
}

// scan calls f with the timers in the next places of the shard's wheel, in one hold of
// its lock, and returns what the wheel's Scan does.
func (sh *shard) scan(place uint64, f func(wheel.Entry[payload])) (next uint64, more bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.wheel.Scan(place, pendingPlaces, func(e wheel.Entry[payload]) {
		if isLive(&e) {
			f(e)
		}
	})
}

// scanAll calls f with each timer of the shard, with the lock held.
func (sh *shard) scanAll(f func(wheel.Sample)) {
	more := true
	for place := uint64(0); more; {
		place, more = sh.scan(place, func(e wheel.Entry[payload]) {
			f(wheel.Sample{Place: e.Place, Due: e.Due, Level: e.Level, Tag: e.Tag})
		})
		runtime.Gosched() // see sample
	}
}

// look calls f with the timers in places chosen at random, of which it looks at as many
// as room has, or pendingPlaces, in one hold of the shard's lock. It returns how many
// there were, n at most.
func (sh *shard) look(n int, room []wheel.Sample, random *rand.Rand, f func(wheel.Sample)) (found int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, x := range sh.wheel.Sample(room[:min(len(room), pendingPlaces)], random.Uint64N) {
		if found == n {
			break
		}
		if x.Tag == tagEntry {
			e, ok := sh.wheel.At(x.Place)
			if !ok || !isLive(&e) {
				continue
			}
			x.Due = e.Due
		}
		found++
		f(x)
	}
	return found
}

// sample calls f with n of about size timers of the shard, chosen at random, with the
// lock held. Where there are few places, or n is not much less than size, it goes
// through all: then none is chosen twice.
func (sh *shard) sample(n, size int, room []wheel.Sample, f func(wheel.Sample)) {
	if n <= 0 {
		return
	}
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	sh.mu.Lock()
	places := int(sh.wheel.Places())
	sh.mu.Unlock()
	size = max(size, 1)
	looks := places/size + 1 // for each that is found
	// Knuth's algorithm S.
	choose := func() {
		sh.scanAll(func(x wheel.Sample) {
			if n > 0 && random.IntN(max(size, 1)) < n {
				n--
				f(x)
			}
			size--
		})
	}
	if places <= 1024 || 4*n >= size && (looks <= 64 || places <= 4096) {
		choose()
		return
	}
	// Eight times as many looks as it should take, and 64, so that a single one is found
	// nearly always; but where a few timers are in very much memory, not all of that.
	for tries := max(64*n, min(8*looks*n+64, 1<<16)); n > 0 && tries > 0; {
		now := room[:min(n*looks, len(room), tries)]
		tries -= len(now)
		n -= sh.look(n, now, random, f)
		// If Start waits for the lock, it takes it now. Without this the next hold
		// would come first, again and again, until the mutex has starved for a
		// millisecond (BenchmarkStartStop/scraped in observe/prom).
		runtime.Gosched()
	}
	if n > 0 && places <= 1<<20 {
		choose() // bad luck
	}
}

// describe is called with the shard's lock held.
func (s *Scheduler) describe(e wheel.Entry[payload], origins map[wheel.ID]*[originDepth]uintptr) PendingTimer {
	kind, pc := e.Value.describe(e.Tag)
	return PendingTimer{Due: s.at(e.Due), Kind: kind, pc: pc, origin: origins[e.ID]}
}

// described is implemented by the owners of nodes.
type described interface {
	// describe returns what the timer is for, and the code of its callback.
	describe() (Kind, uintptr)
}

// describe returns what a timer is for, and the code of its callback.
func (p payload) describe(tag uint8) (Kind, uintptr) {
	switch tag {
	case tagFunc:
		return KindFunc, p.code()
	case tagChan:
		return KindChannel, 0
	case tagContext:
		return KindContext, 0
	}
	return p.node().owner.(described).describe()
}

// code returns where the code of a func value begins: in the first word of what it
// points to.
func (p payload) code() uintptr {
	if p.p == nil {
		return 0
	}
	return *(*uintptr)(p.p)
}

// codeOf is code for any func value.
func codeOf[F any](f F) uintptr { return payload{*(*unsafe.Pointer)(unsafe.Pointer(&f))}.code() }

func (t *Ticker) describe() (Kind, uintptr)   { return KindTicker, 0 }
func (d *Deadline) describe() (Kind, uintptr) { return KindDeadline, 0 }
func (z *sleeper) describe() (Kind, uintptr)  { return KindSleep, 0 }
func (j *Job) describe() (Kind, uintptr)      { return KindJob, codeOf(j.f) }

func (e *keyedEntry[K, V]) describe() (Kind, uintptr) { return KindKeyed, codeOf(e.keyed.f) }
