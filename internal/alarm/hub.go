package alarm

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// A hub rings when alarms are due: it calls their functions. armLocked chooses one of
// these states, by the moment of the earliest alarm:
//
//	state   earliest alarm            descriptor               timers
//	idle    no alarm is set           closed after closeDelay  set to close it, or stopped
//	far     more than nearLimit away  closed after closeDelay  set for the moment
//	exact   at most nearLimit away    set for the moment       set 2 to 20 ms later, as guards
//	busy    at most nearLimit away    closed after closeDelay  set for the moment
//
// In state exact, the timers are guards: they ring if the descriptor is late. After two
// late rings in a row, or one ring of a guard, the state is busy for busyFor.
//
// While rings are frequent, the descriptor is set for at least minGap after the last
// ring.
type hub struct {
	start time.Time // moments count from start

	mu sync.Mutex
	// Guarded by mu.
	alarms     []*hubAlarm // the set alarms, sorted by moment
	armedFor   int64       // the moment that the hub is armed for, or notArmed
	descriptor *descriptor // nil if none is open

	// Two pairs of timers take turns: timers is set for timerAt, and otherTimers is
	// stopped. The second timer of a pair is set spareAfter later than the first. It
	// rings if the first timer's goroutine must wait behind thousands of others.
	timers, otherTimers [2]*time.Timer
	timerAt             int64

	lastRing   int64 // the moment of the last ring
	averageGap int64 // moving average of the time between rings
	lateRings  int   // number of late rings in a row
	busyUntil  int64 // the moment until which the descriptor is not used
}

const (
	never    = int64(math.MaxInt64)
	notArmed = int64(math.MinInt64)

	// The descriptor is used only for alarms at most nearLimit away, because an open
	// descriptor costs the runtime additional system calls.
	nearLimit  = int64(time.Second)
	closeDelay = int64(20 * time.Millisecond) // how long an unused descriptor stays open

	// The guards are set for guardAfter minus averageGap after the descriptor's moment.
	// If rings are rare, setting timers costs little, and they are early.
	guardAfter = int64(20 * time.Millisecond)
	spareAfter = int64(7 * time.Millisecond) // an odd number: few other timers have this period
	lateAfter  = int64(3 * time.Millisecond) // a later ring counts as late; 1.5 ms is normal in an idle process
	busyFor    = int64(2 * time.Second)      // how long a late descriptor is not used

	// Rings are frequent while averageGap is less than 2*minGap. Gaps longer than maxGap
	// count as maxGap, so that averageGap soon falls again.
	minGap = int64(time.Millisecond)
	maxGap = 16 * minGap
)

// processHub returns the hub of the process.
var processHub = sync.OnceValue(newHub)

func newHub() *hub {
	h := &hub{start: time.Now(), armedFor: notArmed, timerAt: never, averageGap: maxGap}
	newTimer := func() *time.Timer { return time.AfterFunc(math.MaxInt64, h.onTimer) }
	h.timers, h.otherTimers = [2]*time.Timer{newTimer(), newTimer()}, [2]*time.Timer{newTimer(), newTimer()}
	return h
}

func (h *hub) momentOf(t time.Time) int64 { return int64(t.Sub(h.start)) }
func (h *hub) now() int64                 { return h.momentOf(time.Now()) }

// firstLocked returns the moment of the earliest alarm, or never if no alarm is set.
func (h *hub) firstLocked() int64 {
	if len(h.alarms) == 0 {
		return never
	}
	return h.alarms[0].when
}

// setAlarm sets an alarm for moment when. If when is never, it stops the alarm.
func (h *hub) setAlarm(m *hubAlarm, when int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.alarms, m); i >= 0 {
		h.alarms = slices.Delete(h.alarms, i, i+1)
	}
	if m.when = when; when != never {
		i, _ := slices.BinarySearchFunc(h.alarms, when, func(m *hubAlarm, when int64) int { return cmp.Compare(m.when, when) })
		h.alarms = slices.Insert(h.alarms, i, m)
	}
	if h.armedFor != h.firstLocked() {
		h.armLocked(h.now())
	}
}

func (h *hub) release() {
	h.mu.Lock()
	if len(h.alarms) > 0 {
		h.mu.Unlock()
		return
	}
	d := h.descriptor
	h.descriptor = nil
	h.armLocked(h.now())
	h.mu.Unlock()
	if d != nil {
		d.file.Close()
	}
}

// armLocked sets the descriptor and the timers for the moment of the earliest alarm.
func (h *hub) armLocked(now int64) {
	at := h.firstLocked()
	h.armedFor = at
	if at-now <= nearLimit && now >= h.busyUntil && h.openLocked() {
		guardDelay := guardAfter - h.averageGap
		if h.averageGap < 2*minGap {
			at = max(at, h.lastRing+minGap)
		}
		h.descriptor.set(now, at)
		if at+guardDelay/2 <= h.timerAt && h.timerAt <= at+guardDelay {
			return
		}
		at += guardDelay
	} else if h.descriptor != nil {
		h.descriptor.setFor.Store(never)
		at = min(at, now+closeDelay)
	}
	h.timerLocked(now, at)
}

// timerLocked sets the timers for moment at, or stops them if at is never. It sets the
// other pair before it stops the present pair. Otherwise package time could wake a thread
// for nothing.
func (h *hub) timerLocked(now, at int64) {
	if h.timerAt == at {
		return
	}
	h.timerAt = at
	h.timers, h.otherTimers = h.otherTimers, h.timers
	if at != never {
		d := time.Duration(max(at-now, 0))
		h.timers[0].Reset(d)
		h.timers[1].Reset(d + time.Duration(spareAfter))
	}
	h.otherTimers[0].Stop()
	h.otherTimers[1].Stop()
}

// onTimer is the function of all four timers.
func (h *hub) onTimer() {
	h.mu.Lock()
	now := h.now()
	if now < h.timerAt {
		h.mu.Unlock() // the timers have been set for another moment meanwhile
		return
	}
	h.timerLocked(now, never)
	first, isGuard := h.firstLocked(), h.descriptor != nil && h.descriptor.setFor.Load() != never
	if first <= now || !isGuard {
		h.closeLocked() // its goroutine is late or inside a function, or closeDelay has passed
	}
	if first > now {
		h.armLocked(now)
		h.mu.Unlock()
		return
	}
	if isGuard {
		h.busyUntil = now + busyFor
	}
	h.ringLocked(now, first)()
}

// closeLocked closes the descriptor if it is open. That ends the descriptor's goroutine.
func (h *hub) closeLocked() {
	if h.descriptor != nil {
		go h.descriptor.file.Close() // Close waits for the goroutine, which may wait for a proc
		h.descriptor = nil
	}
}

// ringLocked removes the due alarms and unlocks the hub. It calls their functions on new
// goroutines, but returns the first, which the caller must call. at is the moment for
// which the ring was set.
func (h *hub) ringLocked(now, at int64) (first func()) {
	if now-at <= lateAfter {
		h.lateRings = 0
	} else if h.lateRings++; h.lateRings >= 2 {
		h.busyUntil = now + busyFor
	}
	dueCount := 0
	for dueCount < len(h.alarms) && h.alarms[dueCount].when <= now {
		dueCount++
	}
	first = h.alarms[0].f
	for _, m := range h.alarms[1:dueCount] {
		go m.f()
	}
	h.alarms = slices.Delete(h.alarms, 0, dueCount)
	h.averageGap += (min(now-h.lastRing, maxGap) - h.averageGap) / 16
	h.lastRing = now
	h.armedFor = notArmed
	if len(h.alarms) > 0 {
		h.armLocked(now)
	} // otherwise the function will reset or stop its alarm
	h.mu.Unlock()
	return first
}
