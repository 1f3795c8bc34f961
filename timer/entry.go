package timer

import (
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/timingwheel"
)

// # A Timer that is stopped and reset without the shard's lock
//
// From the second Reset on, what the wheel holds for a Timer is a timerEntry. Stop, and Reset
// to a later time, then change the Timer alone: they take its own lock, and do not touch the
// wheel. The entry stays where it is until it falls due there, and then moves to the Timer's
// deadline, or leaves.
//
// The ground rules:
//
//   - Timer.mu guards the phase. It decides between Stop, Reset, the poller and Close.
//   - Whoever takes an entry out of the wheel, or moves it there, also holds the shard's lock,
//     which comes first.
//   - An entry never lies later in the wheel than the Timer's deadline.
//
// The phases, and who makes each transition:
//
//	       Reset, with the shard's lock
//	out ─────────────────────────────────▶ pending ──────┐ Reset: later, here;
//	 ▲                                      │  ▲  ▲       │ earlier, with the shard's
//	 │  the entry falls due: it fires,      │  │  └───────┘ lock
//	 │  unless the deadline is later by now │  │
//	 ├──────────────────────────────────────┤  │ Reset
//	 │                                 Stop ▼  │
//	 ├───────────────────────────────────── dead
//	 │  the entry falls due, or is swept    │ ▲
//	 │                       another's Stop ▼ │ Reset
//	 └────────────────────────────────────── cut
//
// Close makes a pending Timer back.
const (
	// out: the Timer has no entry. It has fired or was stopped, or is pending without one.
	out = iota
	// pending: it will fire.
	pending
	// dead: it was stopped. The entry is still in the wheel.
	dead
	// cut: it was stopped, and the entry does not point to it any more.
	cut
	// back: Close handed it back, and took the entry.
	back
)

// A timerEntry is what the wheel keeps for a Timer that is reset again and again.
//
// It points to the Timer, and so keeps the callback alive. A dead Timer's pointer is cut, so
// that the entry keeps nothing alive: a Stop cuts the Timer that was stopped before it on the
// stripe, unless that is pending again, and so does the shard's expiry. So a Timer that is
// stopped and reset right after touches no other line of memory: BenchmarkStopReset.
type timerEntry struct {
	// t is the Timer; nil while that is cut, and goneTimer once the entry of a cut one
	// has left the wheel. The Timer makes it nil, and itself again, with its mu held; from
	// nil to goneTimer it goes with the shard's lock held.
	t atomic.Pointer[Timer]
	// word is of the id, packed, and guarded by the shard's lock.
	word uint64
	// slack and room are the Timer's slack, and that by which the entry lies in the wheel.
	// Timer.mu guards them.
	slack, room int64
}

// goneTimer is none.
var goneTimer Timer

// timerEntries are what a shard knows of its entries, guarded by its lock.
type timerEntries struct {
	// n counts the entries in the wheel.
	n int
	// gone counts the dead ones that have left it.
	gone uint64
	// place is where the next sweep goes on.
	place uint64
}

// id returns what the shard knows the entry of t by.
func (e *timerEntry) id(t *Timer) timingwheel.ID { return bucket.Unpack(e.word, uint32(t.rest)) }

// slackOf returns the Scheduler's slack for a delay.
func (sh *shard) slackOf(d time.Duration) int64 { return int64(sh.s.config.slack.of(d)) }

// moveTo notes what the Timer is pending for.
func (t *Timer) moveTo(deadline, slack int64) {
	t.deadline = deadline
	if t.sh.s.config.slack.most > 0 {
		t.entry.Load().slack = slack
	}
}

// placedAt notes by what the entry lies in the wheel now, and that the Timer is pending
// for that.
func (t *Timer) placedAt(e *timerEntry, deadline, slack int64) {
	t.deadline, t.word = deadline, uint64(deadline)
	e.slack, e.room = slack, slack
}

// reaches reports whether the entry falls due in time for another deadline: no later
// than at the moment that the wheel would choose for that.
func (t *Timer) reaches(deadline, slack int64) bool {
	if t.sh.s.config.slack.most > 0 {
		if room := t.entry.Load().room; slack != room { // perhaps with other steps
			return deadline >= deadlineAfter(int64(t.word), time.Duration(room))
		}
	}
	return deadline >= int64(t.word)
}

// stopEntry stops the Timer, and reports whether it was pending. known is false if that
// is not to be told here, since it is out.
func (t *Timer) stopEntry() (ok, known bool) {
	ok, known, crowded := t.kill()
	if ok {
		t.sh.cutBefore(t)
	}
	if crowded {
		t.sh.mu.Lock()
		t.sh.buryLocked(t)
		t.sh.unlock()
	}
	return ok, known
}

// kill makes a pending Timer dead. crowded reports that there are many of these now, or
// only these.
func (t *Timer) kill() (ok, known, crowded bool) {
	t.mu.Lock()
	switch t.phase.Load() {
	case dead, cut:
		known = true
	case pending:
		ok, known = true, true
		t.phase.Store(dead)
		crowded = t.sh.shared.stop()
	}
	t.mu.Unlock()
	return ok, known, crowded
}

// cutBefore cuts the Timer that was stopped before t.
func (sh *shard) cutBefore(t *Timer) {
	s := sh.shared.own()
	if s.last.Load() == t {
		return
	}
	if last := s.last.Swap(t); last != nil && last.phase.Load() == dead {
		last.cut()
	}
}

// cut clears the pointer from a dead Timer's entry to the Timer.
func (t *Timer) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase.Load() == dead {
		t.entry.Load().t.Store(nil)
		t.phase.Store(cut)
	}
}

// revive makes a dead Timer pending again, or reports false: its entry has gone, which
// makes it out for who holds the shard's lock.
func (t *Timer) revive(was uint32) bool {
	if was == cut && !t.entry.Load().t.CompareAndSwap(nil, t) {
		return false
	}
	t.phase.Store(pending)
	t.sh.shared.own().revived.Add(1)
	return true
}

// setOut makes the Timer one without an entry. The shard is locked, too.
func (t *Timer) setOut() {
	t.phase.Store(out)
	t.word = 0 // no id
}

// resetEntry moves a Timer to a deadline for which its entry falls due in time, and
// reports whether it was pending. It reports not done, and has done nothing, if that
// takes the shard's lock.
func (t *Timer) resetEntry(now int64, d time.Duration) (active, done bool) {
	if d <= 0 {
		return false, false
	}
	sh := t.sh
	deadline, slack := deadlineAfter(now, d), sh.slackOf(d)
	t.mu.Lock()
	was := t.phase.Load()
	// Close sets closed before it comes to this Timer: either that is seen here, or Close
	// hands this Timer back.
	done = (was == pending || was == dead || was == cut) && t.reaches(deadline, slack) && !sh.s.closed.Load()
	if done && was != pending {
		done = t.revive(was)
	}
	if done {
		t.moveTo(deadline, slack)
	}
	t.mu.Unlock()
	return was == pending && done, done
}

// resetEntryLocked resets a Timer whose entry is in the wheel, and reports whether it
// was pending. It reports not done if there is no entry, or no more.
func (t *Timer) resetEntryLocked(now int64, d time.Duration) (active, done bool) {
	if t.phase.Load() == out {
		return false, false
	}
	sh := t.sh
	t.mu.Lock()
	was := t.rejoinLocked()
	if d > 0 && (was == pending || was == dead && !sh.s.closed.Load()) {
		deadline, slack := deadlineAfter(now, d), sh.slackOf(d)
		sh.wheel.Observe(now)
		e := t.entry.Load()
		if sh.wheel.MoveWithin(e.id(t), deadline, slack) {
			t.placedAt(e, deadline, slack)
			if was == dead {
				t.revive(was)
			}
			t.mu.Unlock()
			return was == pending, true
		}
	}
	t.mu.Unlock()
	if !t.takeOutLocked() {
		return false, false
	}
	sh.fireLocked(t.p, t.tag)
	return true, true
}

// rejoinLocked makes a cut Timer dead again, or out if its entry has gone, and returns the
// phase. The Timer is locked.
func (t *Timer) rejoinLocked() uint32 {
	if t.phase.Load() == cut {
		if t.entry.Load().t.CompareAndSwap(nil, t) {
			t.phase.Store(dead)
		} else {
			t.setOut()
		}
	}
	return t.phase.Load()
}

// takeOutLocked takes a Timer's entry out of the wheel, if it is there, and reports whether
// the Timer was pending.
func (t *Timer) takeOutLocked() (active bool) {
	t.mu.Lock()
	was := t.rejoinLocked()
	if was != pending && was != dead {
		t.mu.Unlock()
		return false
	}
	id := t.entry.Load().id(t)
	t.sh.leaveLocked(t)
	t.mu.Unlock()
	t.sh.removeLocked(id)
	return was == pending
}

// leaveLocked notes that a Timer's entry leaves the wheel. The Timer is locked.
func (sh *shard) leaveLocked(t *Timer) {
	if t.phase.Load() != pending {
		sh.entries.gone++
	}
	sh.entries.n--
	t.setOut()
}

// takesEntryLocked reports whether a Timer that is out and is reset gets an entry.
func (t *Timer) takesEntryLocked(d time.Duration) bool {
	return d > 0 && !t.sh.s.closed.Load()
}

// startEntryLocked resets a Timer that is out, and reports whether it was active.
func (t *Timer) startEntryLocked(now int64, d time.Duration) (active bool) {
	sh, old, e := t.sh, t.idLocked(), t.entry.Load()
	if e == nil {
		e = new(timerEntry)
		t.entry.Store(e)
	}
	e.t.Store(t)
	deadline, slack := deadlineAfter(now, d), sh.slackOf(d)
	sh.wheel.Observe(now)
	id, ok := sh.wheel.AddTagged(deadline, slack, entryPayload(e), tagEntry)
	_, active = sh.removeLocked(old)
	if !active {
		active = sh.stopFallbackLocked(old) || t.withdrawLocked()
		sh.n.started++
	}
	if !ok {
		sh.fireLocked(t.p, t.tag)
		return active
	}
	word, rest := id.Pack()
	t.mu.Lock()
	t.rest, e.word = uint8(rest), word
	t.placedAt(e, deadline, slack)
	t.phase.Store(pending)
	t.mu.Unlock()
	sh.entries.n++
	if sh.entries.n >= sh.s.config.stripedFrom {
		sh.shared.stripeLocked(sh.s.shards.procs)
	}
	sh.markLocked()
	return active
}

// expireEntriesLocked replaces entries, among what has left the wheel, by the Timers that
// fire.
func (sh *shard) expireEntriesLocked(expired []timingwheel.Expired[payload]) []timingwheel.Expired[payload] {
	n := 0
	for i := range expired {
		if x := &expired[i]; x.Tag != tagEntry || sh.expireEntryLocked(x.Value.entry(), x) {
			expired[n] = *x
			n++
		}
	}
	clear(expired[n:])
	sh.tidyLocked()
	return expired[:n]
}

// expireEntryLocked makes of an entry that was due what is to be fired, or reports false:
// the Timer was stopped, or is due later, where its entry is now.
func (sh *shard) expireEntryLocked(e *timerEntry, x *timingwheel.Expired[payload]) bool {
	t := sh.ownerLocked(e)
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase.Load() != pending {
		sh.leaveLocked(t)
		return false
	}
	if t.deadline != int64(t.word) || e.slack != e.room {
		if id, ok := sh.wheel.AddTagged(t.deadline, e.slack, x.Value, tagEntry); ok {
			word, rest := id.Pack()
			t.rest, e.word = uint8(rest), word
			t.placedAt(e, t.deadline, e.slack)
			sh.n.cascaded++
			return false
		}
		x.Deadline, x.Due = t.deadline, sh.wheel.Due(t.deadline, e.slack)
	}
	x.Value, x.Tag = t.p, t.tag
	sh.leaveLocked(t)
	return true
}

// pending replaces an entry in x by the Timer that it stands for, or reports false if that
// is not pending. The shard is locked.
func (e *timerEntry) pending(x *timingwheel.Expired[payload]) bool {
	t := e.t.Load()
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase.Load() != pending {
		return false
	}
	x.Value, x.Tag, x.Deadline = t.p, t.tag, t.deadline
	x.Due = t.sh.wheel.Due(t.deadline, e.slack)
	return true
}

// ownerLocked returns the Timer of an entry in the wheel. If that was cut it returns nil,
// and has noted that the entry leaves the wheel, for which the caller sees then.
func (sh *shard) ownerLocked(e *timerEntry) *Timer {
	for {
		if t := e.t.Load(); t != nil {
			return t
		}
		if e.t.CompareAndSwap(nil, &goneTimer) { // else it was reset just now
			sh.entries.gone++
			sh.entries.n--
			return nil
		}
	}
}

// # When dead entries go
//
// A dead entry goes when it falls due. Before that, all go when no live ones are left, so
// that an empty Scheduler sleeps. And they are swept when they are sweepLeast and a
// quarter of the shard's entries at the least, as the runtime does with its own: a batch
// by each Stop that comes then, until they are fewer. A pass over the shard takes away as
// many as it has come for; so this is some entries' worth for each Stop, in holds of the
// lock no longer than for a batch that expires.

// sweepLeast is how many dead entries there are before they are swept.
const sweepLeast = 256

// buryLocked looks after the dead once a Stop has found them many, or nothing else: it
// was t that it has stopped.
func (sh *shard) buryLocked(t *Timer) {
	t.mu.Lock()
	if t.phase.Load() == dead && sh.deadLocked() == sh.wheel.Len() {
		// A Timer that is alone leaves at once.
		id := t.entry.Load().id(t)
		sh.leaveLocked(t)
		sh.wheel.Remove(id)
	}
	t.mu.Unlock()
	sh.tidyLocked()
	sh.noteEmptiedLocked(true)
}

// tidyLocked is called when entries have left, or become dead.
func (sh *shard) tidyLocked() {
	sh.shared.cutLocked()
	sh.markLocked() // first: who is not counted below looks at this
	switch n, entries := sh.deadLocked(), sh.wheel.Len(); {
	case n == 0:
	case n >= entries:
		sh.entries.place = 0
		sh.sweepLocked(math.MaxInt)
	case n >= sh.manyDeadLocked():
		sh.sweepLocked(batchSize)
	}
	sh.markLocked()
}

// manyDeadLocked returns how many dead entries are to be swept: fewer than a quarter where
// it may take some more to notice.
func (sh *shard) manyDeadLocked() int {
	many := max(sh.s.config.sweepLeast, sh.wheel.Len()/4)
	if sh.shared.others() != nil {
		many -= many / overshoot
	}
	return many
}

// markLocked sets the number of dead entries at which the next Stop sweeps: when they are
// many, or all that is left.
func (sh *shard) markLocked() {
	many, length := sh.manyDeadLocked(), sh.wheel.Len()
	n := many
	if sh.entries.n == length {
		n = min(n, length)
	}
	sh.shared.markLocked(int64(sh.entries.gone)+int64(n), many, length)
}

// sweepLocked removes the dead entries in so many places of the wheel.
func (sh *shard) sweepLocked(places int) {
	place, more := sh.wheel.Sweep(sh.entries.place, places, tagEntry, func(p payload) bool {
		t := sh.ownerLocked(p.entry())
		if t == nil {
			return true
		}
		if t.phase.Load() == pending {
			return false
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		return sh.leftDeadLocked(t)
	})
	if !more {
		place = 0
	}
	sh.entries.place = place
}

// leftDeadLocked notes that a Timer's entry leaves the wheel, if it is dead. The Timer is
// locked.
func (sh *shard) leftDeadLocked(t *Timer) bool {
	switch t.phase.Load() {
	case dead, cut:
		sh.leaveLocked(t)
		return true
	}
	return false
}

// handBackEntriesLocked settles all Timers with entries in a wheel that is handed back,
// and returns how many of these are dead.
func (sh *shard) handBackEntriesLocked(w *timingwheel.Wheel[payload]) (deads int) {
	if sh.entries.n == 0 {
		return 0
	}
	before := sh.entries.gone
	w.Each(func(x timingwheel.Entry[payload]) {
		if x.Tag != tagEntry {
			return
		}
		t := sh.ownerLocked(x.Value.entry())
		if t == nil {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if !sh.leftDeadLocked(t) {
			sh.entries.n--
			t.phase.Store(back)
			t.word = 0 // no id
		}
	})
	sh.shared.forgetLocked()
	return int(sh.entries.gone - before)
}

// handedBack replaces an entry of a closed Scheduler in x by the Timer that was handed back,
// or reports false if that was dead.
func (e *timerEntry) handedBack(x *timingwheel.Expired[payload]) bool {
	t := e.t.Load()
	if t == nil || t.phase.Load() != back {
		return false
	}
	x.Value, x.Tag, x.Deadline = t.p, t.tag, t.deadline
	return true
}

// lenLocked returns the number of pending timers.
func (sh *shard) lenLocked() int { return max(0, sh.wheel.Len()-sh.deadLocked()) }

// deadLocked returns the number of dead entries: never too few, and exactly, unless
// others stop and reset meanwhile. It is no more than all entries.
func (sh *shard) deadLocked() int {
	return min(int(sh.shared.dead())-int(sh.entries.gone), sh.entries.n)
}

func (sh *shard) addEntriesLocked(st *Stats) {
	st.Started += sh.shared.revived()
	st.Stopped += sh.shared.stopped()
}

// A stripe is what Stops and Resets of a shard's Timers write without its lock. A shard
// has one. Once it has stripedFrom Timers with entries it has several, each in a cache
// line of its own, of which a goroutine uses one: Timers stay on the shard that made
// them, but are stopped and reset on all procs. (Counters in stripes are known from
// java.util.concurrent's LongAdder.)
type stripe struct {
	// stopped and revived count the Timers that became dead, and pending again. They
	// change with the Timer's mu held. A Timer may be counted by one stripe, and by another
	// when it is pending again.
	stopped, revived atomic.Uint64
	// last is the Timer that was stopped last, and is yet to be cut.
	last atomic.Pointer[Timer]
	// look is how large stopped less revived may become before whoever stops another
	// counts the dead of all stripes.
	look atomic.Int64
}

type paddedStripe struct {
	stripe
	_ [64 - unsafe.Sizeof(stripe{})]byte
}

const (
	// stripedFrom is from how many entries on a shard has manyStripes, so that two
	// goroutines share one seldom.
	stripedFrom = 1024
	manyStripes = 16
)

// sharedEntries are read and written without the shard's lock.
type sharedEntries struct {
	// mark is how many Timers may be dead, with those whose entries have gone, before
	// whoever stops another has to look after them: see tidyLocked.
	mark atomic.Int64
	// more are the stripes that are used in place of the first, once there are any. They
	// are made with the shard's lock held.
	more atomic.Pointer[[manyStripes]paddedStripe]
	// step is by how much the count of a stripe may grow before all are counted; 0 if each
	// Stop has to count them.
	step atomic.Int64

	first stripe
}

// own returns the stripe of the goroutine that calls it: by the address of its stack,
// which tells it from others without a visit to memory.
func (e *sharedEntries) own() *stripe {
	more := e.more.Load()
	if more == nil {
		return &e.first
	}
	var here byte
	hash := uint64(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b97f4a7c15 // Knuth's multiplicative hash
	return &more[hash/(math.MaxUint64/manyStripes+1)].stripe
}

// others returns the stripes but for the first.
func (e *sharedEntries) others() []paddedStripe {
	if more := e.more.Load(); more != nil {
		return more[:]
	}
	return nil
}

// revived returns how many Timers became pending again.
func (e *sharedEntries) revived() uint64 {
	n := e.first.revived.Load()
	others := e.others()
	for i := range others {
		n += others[i].revived.Load()
	}
	return n
}

// stopped returns how many Timers became dead.
func (e *sharedEntries) stopped() uint64 {
	n := e.first.stopped.Load()
	others := e.others()
	for i := range others {
		n += others[i].stopped.Load()
	}
	return n
}

// dead returns how many Timers became dead, less those that became pending again: never
// too few, and exactly unless others stop and reset meanwhile.
func (e *sharedEntries) dead() int64 {
	revived := e.revived() // first, so that the difference is not negative
	return int64(e.stopped() - revived)
}

// stop counts a Timer that became dead, and reports whether there are as many as mark.
func (e *sharedEntries) stop() (crowded bool) {
	s := e.own()
	n := int64(s.stopped.Add(1) - s.revived.Load())
	if e.more.Load() == nil {
		return n >= e.mark.Load()
	}
	step := e.step.Load()
	if look := s.look.Load(); step > 0 && look-2*step <= n && n < look {
		return false
	}
	if e.dead() >= e.mark.Load() {
		return true // and so does the next, until they are fewer
	}
	s.look.Store(n + step)
	return false
}

// markLocked sets the number of dead Timers at which the next Stop sweeps. many
// is what manyDeadLocked returns, length how many are in the wheel: if they are few, each
// Stop counts all, since all may be dead.
func (e *sharedEntries) markLocked(mark int64, many, length int) {
	var step int
	if others := e.others(); others != nil && 2*many <= length {
		step = many / (2 * overshoot * len(others))
	}
	if mark != e.mark.Load() {
		e.mark.Store(mark)
	}
	if int64(step) != e.step.Load() {
		e.step.Store(int64(step))
	}
}

// overshoot is what share of the mark, at the most, more are dead before that is noticed:
// on each stripe two steps.
const overshoot = 8

// stripeLocked makes the stripes, if there is more than one proc.
func (e *sharedEntries) stripeLocked(procs int) {
	if procs > 1 && e.more.Load() == nil {
		e.more.Store(new([manyStripes]paddedStripe))
	}
}

// cutLocked cuts the Timers that were stopped last.
func (e *sharedEntries) cutLocked() {
	e.first.cut()
	others := e.others()
	for i := range others {
		others[i].cut()
	}
}

// forgetLocked is cutLocked for entries that are no more.
func (e *sharedEntries) forgetLocked() {
	e.first.last.Store(nil)
	others := e.others()
	for i := range others {
		others[i].last.Store(nil)
	}
}

// cut cuts the Timer that was stopped last.
func (s *stripe) cut() {
	if last := s.last.Load(); last != nil && s.last.CompareAndSwap(last, nil) {
		last.cut()
	}
}
