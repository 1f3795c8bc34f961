package timer

import (
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/timingwheel"
)

// A timerEntry is what the wheel keeps for a Timer that has been reset. From the first
// Reset on the Timer is stopped, and reset to a later time, in the Timer itself: without
// the shard's lock, and without a move in the wheel. The entry stays where it is until it
// falls due there, and then follows.
//
// # The phases of such a Timer
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
// Timer.mu decides between Stop, Reset, the poller and Close. Whoever takes the entry out
// of the wheel, or moves it there, holds the shard's lock too, which comes first.
//
// # What a dead entry keeps alive
//
// The entry points to the Timer, and so keeps the callback alive. Once the Timer is dead
// that is cut: then the entry, which is in the wheel still, keeps nothing alive. A Stop
// cuts the one that was stopped before it on the stripe, unless that is pending again, and
// so does the shard's expiry. For what is stopped and reset right after, which is what
// the entry is for, another line of memory so need not be touched: BenchmarkStopReset.
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

const (
	// out: the Timer has no entry. It has fired, or is pending without one. It becomes
	// out, and stays so no longer, with the shard's lock held.
	out = iota
	// pending: it will fire.
	pending
	// dead: it was stopped. The entry is still there.
	dead
	// cut: it was stopped, and the entry points to it no more.
	cut
	// back: it was handed back by Close. The entry has gone with it.
	back
)

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

// cut has the entry of a dead Timer point to it no more.
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

// expireEntriesLocked replaces the entries of Timers, among what has left the wheel, by
// what is to be fired of them.
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

// pending makes of an entry in the wheel the timer that is pending, or reports false if
// that is dead. The shard is locked.
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
