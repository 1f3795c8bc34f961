package alarm

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// A hub rings when alarms are due: it calls their functions. armForFirstAlarmLocked
// chooses one of these states, by the moment of the earliest alarm:
//
//	state   earliest alarm            descriptors              timers
//	idle    no alarm is set           closed after closeDelay  set to close them, or stopped
//	far     more than nearLimit away  closed after closeDelay  set for the moment
//	exact   at most nearLimit away    one set for the moment   set 6 to 12 ms later, as guards
//	busy    at most nearLimit away    closed after closeDelay  set for the moment
//
// In state exact, the timers are guards: they ring if the descriptor is late, because
// goroutines compute on all procs. After two late rings in a row, or one ring of a guard,
// the state is busy for busyFor. If a proc is idle but the descriptor is not heard, the
// lookout rings: see lookout.
//
// While callbacks take long and rings are rare, guards are set at most 1 ms later than the
// descriptor: the next ring may be the first that is late, 2 ms after the callbacks began.
//
// While rings are frequent, the descriptor is set for at least minGap after the last
// ring, unless an alarm is already due: its owner has work that must not wait.
type hub struct {
	startTime time.Time // moments count from startTime

	mu sync.Mutex
	// Guarded by mu.
	alarms      []*hubAlarm // the set alarms, sorted by moment
	armedMoment int64       // the moment that the hub is armed for, or notArmed
	// descriptors are open, or nil. The second one is only open if the first one is.
	descriptors     [2]*descriptor
	armedDescriptor *descriptor // the descriptor that is set for armedMoment, or nil
	lookout         *lookout    // open together with descriptors[0], or nil

	// Two pairs of timers take turns: currentTimers is set for timersMoment, and
	// stoppedTimers is stopped. The second timer of a pair is set spareAfter later than
	// the first. It rings if the first timer's goroutine must wait behind thousands of
	// others.
	currentTimers, stoppedTimers [2]*time.Timer
	timersMoment                 int64

	lastRingMoment int64 // the moment of the last ring
	averageRingGap int64 // moving average of the time between rings
	lateRingCount  int   // number of late rings in a row
	busyUntil      int64 // the moment until which the descriptor is not used
	slowUntil      int64 // the moment until which callbacks may take long
}

const (
	never    = int64(math.MaxInt64)
	notArmed = int64(math.MinInt64)

	// The descriptor is used only for alarms at most nearLimit away, because an open
	// descriptor costs the runtime additional system calls.
	nearLimit  = int64(time.Second)
	closeDelay = int64(20 * time.Millisecond) // how long an unused descriptor stays open

	// The guards are set for at most guardAfter, and at least guardAfter/2, after the
	// descriptor's moment. So while rings are frequent, not every ring sets them again:
	// that wakes a thread, and with 4 ms took a third of the CPU at 1,000 rings a second.
	// The lookout is set likewise, by lookoutAfter: that costs a system call.
	guardAfter   = int64(12 * time.Millisecond)
	soonAfter    = int64(time.Millisecond) // for guards while callbacks take long and rings are rare
	lookoutAfter = int64(3 * time.Millisecond)
	spareAfter   = int64(7 * time.Millisecond) // an odd number: few other timers have this period
	lateAfter    = int64(3 * time.Millisecond) // a later ring counts as late; 1.5 ms is normal in an idle process
	busyFor      = int64(2 * time.Second)      // how long a late descriptor is not used

	// Rings are frequent while averageRingGap is less than 2*minGap. Gaps longer than
	// maxGap count as maxGap, so that averageRingGap soon falls again.
	minGap = int64(time.Millisecond)
	maxGap = 16 * minGap
)

// processHub returns the hub of the process.
var processHub = sync.OnceValue(newHub)

func newHub() *hub {
	h := &hub{startTime: time.Now(), armedMoment: notArmed, timersMoment: never, averageRingGap: maxGap}
	newTimer := func() *time.Timer { return time.AfterFunc(math.MaxInt64, h.onTimer) }
	h.currentTimers, h.stoppedTimers = [2]*time.Timer{newTimer(), newTimer()}, [2]*time.Timer{newTimer(), newTimer()}
	return h
}

func (h *hub) momentOf(t time.Time) int64 { return int64(t.Sub(h.startTime)) }
func (h *hub) now() int64                 { return h.momentOf(time.Now()) }

// firstMomentLocked returns the moment of the earliest alarm, or never if no alarm is
// set.
func (h *hub) firstMomentLocked() int64 {
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
	if h.armedMoment != h.firstMomentLocked() {
		h.armForFirstAlarmLocked(h.now())
	}
}

func (h *hub) expectLateRings() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	h.slowUntil = now + busyFor
	if h.armedDescriptor != nil {
		h.armForFirstAlarmLocked(now)
	}
}

func (h *hub) release() {
	h.mu.Lock()
	if len(h.alarms) > 0 {
		h.mu.Unlock()
		return
	}
	closeAll := h.takeDescriptorsLocked()
	h.armForFirstAlarmLocked(h.now())
	h.mu.Unlock()
	closeAll()
}

// takeDescriptorsLocked makes the hub forget its descriptors and its lookout. The caller
// must call closeAll without the lock. It ends their goroutines, and waits until none of
// them uses its timerfd.
func (h *hub) takeDescriptorsLocked() (closeAll func()) {
	ds, l := h.descriptors, h.lookout
	h.descriptors, h.armedDescriptor, h.lookout = [2]*descriptor{}, nil, nil
	return func() {
		for _, d := range ds {
			if d != nil {
				d.file.Close()
			}
		}
		if l != nil {
			l.close()
		}
	}
}

// armForFirstAlarmLocked sets a descriptor and the timers for the moment of the earliest
// alarm.
func (h *hub) armForFirstAlarmLocked(now int64) {
	at := h.firstMomentLocked()
	h.armedMoment, h.armedDescriptor = at, nil
	if at-now <= nearLimit && now >= h.busyUntil {
		h.armedDescriptor = h.waitingDescriptorLocked()
	}
	if d := h.armedDescriptor; d != nil {
		if h.averageRingGap < 2*minGap && at > now {
			at = max(at, h.lastRingMoment+minGap)
		}
		d.setTarget(now, at)
		h.lookout.setFor(now, at)
		guardAfter := guardAfter
		if now < h.slowUntil && h.averageRingGap > maxGap/2 {
			guardAfter = soonAfter
		}
		if at+guardAfter/2 <= h.timersMoment && h.timersMoment <= at+guardAfter {
			return
		}
		at += guardAfter
	} else if h.descriptors[0] != nil {
		at = min(at, now+closeDelay)
	}
	h.setTimersLocked(now, at)
}

// setTimersLocked sets the timers for moment at, or stops them if at is never. It sets
// the stopped pair before it stops the current pair. Otherwise package time could wake a
// thread for nothing.
func (h *hub) setTimersLocked(now, at int64) {
	if h.timersMoment == at {
		return
	}
	h.timersMoment = at
	h.currentTimers, h.stoppedTimers = h.stoppedTimers, h.currentTimers
	if at != never {
		d := time.Duration(max(at-now, 0))
		h.currentTimers[0].Reset(d)
		h.currentTimers[1].Reset(d + time.Duration(spareAfter))
	}
	h.stoppedTimers[0].Stop()
	h.stoppedTimers[1].Stop()
}

// onTimer is the function of all four timers.
func (h *hub) onTimer() {
	h.mu.Lock()
	now := h.now()
	if now < h.timersMoment {
		h.mu.Unlock() // the timers have been set for another moment meanwhile
		return
	}
	h.setTimersLocked(now, never)
	first, isGuard := h.firstMomentLocked(), h.armedDescriptor != nil
	if first <= now || !isGuard {
		h.closeDescriptorsLocked() // the armed one's goroutine is late, or closeDelay has passed
	}
	if first > now {
		h.armForFirstAlarmLocked(now)
		h.mu.Unlock()
		return
	}
	if isGuard {
		h.busyUntil = now + busyFor
	}
	h.ringAndUnlock(now, first)()
}

// closeDescriptorsLocked closes the open descriptors.
func (h *hub) closeDescriptorsLocked() {
	if h.descriptors[0] != nil {
		go h.takeDescriptorsLocked()() // Close waits for the goroutine, which may wait for a proc
	}
}

// ringAndUnlock removes the due alarms and unlocks the hub. It calls their functions on
// new goroutines, but returns the first, which the caller must call. at is the moment for
// which the ring was set.
func (h *hub) ringAndUnlock(now, at int64) (firstFunc func()) {
	if now-at <= lateAfter {
		h.lateRingCount = 0
	} else if h.lateRingCount++; h.lateRingCount >= 2 {
		h.busyUntil = now + busyFor
	}
	dueCount := 0
	for dueCount < len(h.alarms) && h.alarms[dueCount].when <= now {
		dueCount++
	}
	firstFunc = h.alarms[0].f
	for _, m := range h.alarms[1:dueCount] {
		go m.f()
	}
	h.alarms = slices.Delete(h.alarms, 0, dueCount)
	h.averageRingGap += (min(now-h.lastRingMoment, maxGap) - h.averageRingGap) / 16
	h.lastRingMoment = now
	h.armedMoment = notArmed
	if len(h.alarms) > 0 {
		h.armForFirstAlarmLocked(now)
	} // otherwise the function will reset or stop its alarm
	h.mu.Unlock()
	return firstFunc
}
