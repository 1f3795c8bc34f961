package storetest

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/tickless/tickless/durable/store"
)

// randomCommand sends a random command for one to three tasks.
func (m *modelTest) randomCommand() {
	ops := []store.Op{store.Schedule, store.Schedule, store.Schedule, store.Reschedule, store.Cancel, store.Requeue, store.Purge, store.ResumeTask}
	c := store.Command{Op: ops[m.rng.IntN(len(ops))]}
	if c.Op == store.Purge && m.rng.IntN(3) == 0 {
		c.Op = store.PauseTask
	}
	if c.Op == store.Schedule {
		c.Keep = []store.Keep{store.KeepNone, store.KeepNone, store.KeepAny, store.KeepEarlier, store.KeepLater, store.KeepSame}[m.rng.IntN(6)]
	}
	for range 1 + m.rng.IntN(3) {
		x := store.Item{ID: m.randomKey()}
		if c.Op == store.Requeue || c.Op == store.Purge {
			x.ID = m.randomDeadID(c.Op == store.Purge)
		}
		if c.Op == store.Reschedule && m.rng.IntN(4) == 0 {
			x.ID = m.randomPausedKey()
		}
		if c.Op == store.Schedule || c.Op == store.Reschedule || c.Op == store.Requeue {
			x.When = m.randomWhen()
		}
		if c.Op == store.Reschedule && m.rng.IntN(6) == 0 {
			x.When = store.At(store.Farthest)
		}
		if (c.Op == store.Reschedule || c.Op == store.Requeue) && m.rng.IntN(2) == 0 {
			x.Generation = m.randomGeneration()
		}
		if c.Op == store.Schedule {
			x.Task = store.Task{ID: x.ID, Handler: "h" + strconv.Itoa(m.rng.IntN(3)), Record: []byte(strconv.Itoa(m.rng.Int()))}
			if m.rng.IntN(4) == 0 {
				x.Task.Record = append([]byte{1, 0, 0, 0, 0, 0, 0, byte(m.rng.IntN(256))}, x.Task.Record...)
			}
			if m.rng.IntN(4) == 0 {
				x.Task.Record = m.keepingRecord()
			}
			if m.rng.IntN(4) == 0 {
				x.Task.Schedule = "s" + strconv.Itoa(m.rng.IntN(2))
			}
			if m.rng.IntN(3) == 0 {
				x.Task.Record = m.repeatingRecord()
			}
			if m.rng.IntN(2) == 0 {
				x.Task.Group = "g" + strconv.Itoa(m.rng.IntN(2))
			}
			if m.rng.IntN(4) == 0 {
				x.Task.Record = m.withFollowUps(x.Task.Record)
			}
			x.Next, x.Paused = m.rng.IntN(2) == 0, m.rng.IntN(40) == 0
			// Make rare cases more frequent.
			if t := m.tasks[x.ID]; t != nil && c.Keep == store.KeepSame && m.rng.IntN(2) == 0 {
				x.Task = t.Task
				x.Task.Renew(m.randomGeneration())
			}
			if t := m.tasks[x.ID]; t != nil && t.Repeats() && m.rng.IntN(2) == 0 {
				x.Next = true // with the same times, most often
				x.Task = t.Task
				if t.NextTask != nil {
					x.Task = *t.NextTask
				}
				x.Task.Record = append(slices.Clone(x.Task.Record), byte(m.rng.IntN(256)))
			}
			if x.Next {
				x.When = store.At(x.When.From(m.model.now))
			}
			if t := m.tasks[store.HeadID(x.ID)]; t != nil && m.rng.IntN(3) == 0 {
				x.Task.Record = m.keepingRecord()
			}
		}
		if t := m.tasks[x.ID]; t != nil && !t.newVersion && t.State != store.Past && m.rng.IntN(8) == 0 {
			x.IfVersion = max(1, t.Version-int64(m.rng.IntN(3)))
		}
		c.Items = append(c.Items, x)
	}
	m.sendAndApply(c)
}

// sendAndApply sends a command, sometimes after a copy that is too late.
func (m *modelTest) sendAndApply(c store.Command) {
	x := sentCommand{stamp: m.nextStamp("client" + strconv.Itoa(m.rng.IntN(4))), command: &c}
	m.sendTooLate(&x)
	m.send(x)
	m.recordSent(x)
}

// randomGeneration returns a random generation.
func (m *modelTest) randomGeneration() string {
	b := make([]byte, store.GenerationSize)
	for i := range b {
		b[i] = byte(m.rng.IntN(256))
	}
	return string(b)
}

// randomDeadID returns the id of a random dead letter, with orRun or of a kept run, or sometimes
// another id.
func (m *modelTest) randomDeadID(orRun bool) string {
	var ids []string
	for id, t := range m.tasks {
		isRun := t.State == store.Past && id != store.HeadID(store.KeyOf(id)) && t.At == store.Farthest // others expire
		if t.State == store.Dead || orRun && isRun {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || m.rng.IntN(4) == 0 {
		return m.randomKey()
	}
	slices.Sort(ids)
	return ids[m.rng.IntN(len(ids))]
}

// randomPausedKey returns the key of a paused task, or another key if there is none.
func (m *modelTest) randomPausedKey() string {
	for i := range 12 {
		if t := m.tasks["k"+strconv.Itoa(i)]; t != nil && t.Waits() {
			return t.ID
		}
	}
	return m.randomKey()
}

// setPending makes t a pending task without attempts. It stays paused.
func (t *modelTask) setPending(x store.Task, at store.Time) {
	*t = modelTask{Entry: store.Entry{Task: x, State: store.Pending, At: at, Due: at, Paused: t.Paused, Version: t.Version}, newVersion: t.newVersion, versionBefore: t.versionBefore}
}

// hasBegun reports whether a pending task has a run that a change must not lose.
func (m *model) hasBegun(t *modelTask) bool { return t.Due <= m.now || t.Attempts+t.Crashes > 0 }

// changeRepeating applies a Schedule of a repeating task that is pending or running to
// the model. over says that the new task has no run from now on.
func (m *model) changeRepeating(t *modelTask, x store.Item, at store.Time, over bool) store.Outcome {
	old := t.Task
	if t.NextTask != nil {
		old = *t.NextTask
	}
	samePattern := x.Next && modelPattern(&old) == modelPattern(&x.Task)
	afterRun := at
	if over {
		afterRun = store.Never
	}
	if t.State == store.Running {
		t.NextTask = &x.Task
		switch {
		case t.Following && t.Next == store.Farthest:
			m.caseCounts["stays paused"]++
		case samePattern && modelEnd(&old) == modelEnd(&x.Task):
			m.caseCounts["new content for a running task"]++
			if !t.Following {
				t.Next = 0
			}
		default:
			t.Next = afterRun
		}
		t.Following = true
		return store.Following
	}
	begun := m.hasBegun(t)
	t.Task, t.NextTask = x.Task, nil
	switch {
	case t.At == store.Farthest:
		m.caseCounts["stays paused"]++
	case begun && samePattern:
		m.caseCounts["new content for a run that stays"]++
	case begun && !x.Next && (at <= m.now || at <= t.At):
		t.At = min(t.At, at)
		m.caseCounts["a run that stays is earlier"]++
	case begun:
		t.Following, t.Next = true, afterRun
		m.caseCounts["a run that stays is followed"]++
	case samePattern && (modelEnd(&x.Task) == 0 || t.At <= modelEnd(&x.Task)):
		m.caseCounts["a run keeps its time"]++
	case over:
		m.caseCounts["over and removed"]++
		delete(m.tasks, x.ID)
		return store.Removed
	default:
		t.setPending(x.Task, at)
	}
	return store.Replaced
}

// repeatingRecord returns a record of a repeating task with few different patterns:
// see [store.Task.Repetition].
func (m *modelTest) repeatingRecord() []byte {
	b := []byte{1, 0, 0, 0, 0, 0, 0, 8}
	if m.rng.IntN(2) == 0 {
		b[7] |= 1
		b = append(b, 1, 2, 'k', 'e', 1, byte('0'+m.rng.IntN(3)))
	}
	if m.rng.IntN(2) == 0 {
		b[7] |= 2
		b = append(b, 3)
	}
	if m.rng.IntN(3) == 0 {
		b[7] |= 4
		b = append(b, 200, 1)
	}
	b = append(b, 128+byte(m.rng.IntN(2)), 1)
	if m.rng.IntN(3) == 0 {
		b[7] |= 16
		b = append(b, 1, 0)
	}
	if m.rng.IntN(4) == 0 {
		b[7] |= 32
		b = append(b, 1, '*', 0)
	}
	if m.rng.IntN(2) == 0 {
		b[7] |= 64
		b = append(b, 0)
		b = binary.AppendUvarint(b, uint64(max(1, m.model.now+store.Time(m.rng.IntN(4000)-1000))))
	}
	return append(b, byte(m.rng.IntN(3)))
}

func modelPattern(t *store.Task) string { return t.Repetition().Pattern }
func modelEnd(t *store.Task) store.Time { return t.Repetition().End }

// applyItem applies a command to one task of the model and returns the expected outcome.
func (m *model) applyItem(c *store.Command, x store.Item) store.Outcome {
	t, at := m.tasks[x.ID], x.When.From(m.now)
	if v := x.IfVersion; v != 0 && (t == nil && c.Op == store.Schedule || t != nil && !t.hasVersion(v)) {
		return store.Changed
	}
	if x.IfVersion != 0 && t != nil {
		m.caseCounts["of its version"]++
	}
	hasState := func(s store.State) bool { return t != nil && t.State == s }
	switch c.Op {
	case store.Schedule:
		if k, _ := x.Task.Keeps(); k.Unique > 0 {
			if head := m.tasks[store.HeadID(x.ID)]; head != nil && head.Due > m.now {
				m.caseCounts["unique"]++
				return store.Kept
			}
		}
		over := x.Next && modelEnd(&x.Task) > 0 && at > modelEnd(&x.Task)
		if t == nil && over {
			m.caseCounts["over"]++
			return store.Absent
		}
		if t == nil {
			t = &modelTask{Entry: store.Entry{Paused: x.Paused}}
			t.setPending(x.Task, at)
			m.tasks[x.ID] = t
			return store.Created
		}
		oldAt, timed := t.At, t.State == store.Pending
		if t.Following && t.Next > 0 {
			oldAt, timed = t.Next, true
		}
		if c.Keep == store.KeepAny || timed && (c.Keep == store.KeepEarlier && at >= oldAt || c.Keep == store.KeepLater && at <= oldAt) {
			return store.Kept
		}
		if c.Keep == store.KeepSame && !hasState(store.Dead) && (!t.Stopping || t.Following) {
			nextTask := t.Task
			if t.NextTask != nil {
				nextTask = *t.NextTask
			}
			if nextTask.Same(&x.Task) {
				m.caseCounts["same"]++
				return store.Kept
			}
		}
		if over && hasState(store.Dead) {
			return store.Absent
		}
		if x.Paused {
			m.caseCounts["scheduled paused"]++
			t.Paused = true
		}
		if t.State < store.Dead && t.Repeats() && x.Task.Repeats() && !t.Stopping {
			return m.changeRepeating(t, x, at, over)
		}
		switch {
		case t.Following && t.Next == store.Farthest && x.Task.Repeats():
			at = t.Next
		case over && hasState(store.Pending):
			delete(m.tasks, x.ID)
			return store.Removed
		case over:
			at = store.Never
		}
		if hasState(store.Running) {
			t.NextTask, t.Following, t.Next = &x.Task, true, at
			return store.Following
		}
		t.setPending(x.Task, at)
		return store.Replaced
	case store.Reschedule:
		if hasState(store.Running) {
			followingTask := t.Task
			if t.NextTask != nil {
				followingTask = *t.NextTask
			}
			if followingTask.Renew(x.Generation) {
				t.NextTask = &followingTask
				m.caseCounts["followed by another generation"]++
			}
			t.Following, t.Next = true, at
			return store.Following
		}
		if at == store.Farthest && t != nil && t.Repeats() {
			m.caseCounts["paused"]++
		}
		moved := store.Moved
		if hasState(store.Pending) && t.Paused {
			moved = store.Once
		}
		if hasState(store.Pending) && t.At == store.Farthest && t.Repeats() && !t.Paused {
			m.caseCounts["resumed"]++
			t.Renew(x.Generation)
			t.setPending(t.Task, at)
			return store.Moved
		}
		if hasState(store.Pending) && m.hasBegun(t) && t.Repeats() && at != store.Farthest {
			if at <= m.now || at <= t.At {
				t.At, t.Once = min(t.At, at), t.Paused
				return moved
			}
			m.caseCounts["a run that stays is followed"]++
			nextTask := t.Task
			if t.NextTask != nil {
				nextTask = *t.NextTask
			}
			if nextTask.Renew(x.Generation) {
				t.NextTask = &nextTask
			}
			t.Following, t.Next = true, at
			return store.Following
		}
		if hasState(store.Pending) {
			t.Once = t.Paused
			if t.At = at; t.Attempts+t.Crashes == 0 {
				t.Due = at
				if t.Renew(x.Generation) {
					m.caseCounts["moved to another generation"]++
				}
			}
			return moved
		}
	case store.Cancel:
		if hasState(store.Running) {
			if !t.Stopping {
				m.counters.Cancelled++
			}
			t.Stopping, t.Following, t.Next, t.NextTask, t.Paused = true, false, 0, nil, false
			return store.Stopping
		}
		if hasState(store.Pending) {
			m.counters.Cancelled++
			delete(m.tasks, x.ID)
			return store.Removed
		}
	case store.Import:
		return m.importEntry(t, x.Entry)
	case store.PauseTask, store.ResumeTask:
		return m.applyPause(t, c.Op == store.PauseTask)
	case store.Requeue:
		if hasState(store.Dead) {
			delete(m.tasks, x.ID)
			requeuedTask := t.Task
			if t.Runs > 0 {
				requeuedTask.Schedule = ""
				requeuedTask.ID = store.SingleID(store.KeyOf(x.ID), t.Due)
				for free := m.now; m.tasks[requeuedTask.ID] != nil; free++ {
					requeuedTask.ID = store.SingleID(store.KeyOf(x.ID), free)
				}
			}
			if requeuedTask.Renew(x.Generation) {
				m.caseCounts["requeued as another generation"]++
			}
			t = new(modelTask)
			t.setPending(requeuedTask, at)
			m.tasks[requeuedTask.ID] = t
			m.touch(t)
			return store.Moved
		}
	case store.SetLimit:
		return m.setLimit(x.ID, *x.Limit)
	case store.PauseHandler, store.ResumeHandler:
		return m.applyHandlerPause(c.Op, x.ID, x.Note)
	case store.Purge:
		if hasState(store.Dead) {
			delete(m.tasks, x.ID)
			return store.Removed
		}
		if hasState(store.Past) && t.At > m.now {
			m.caseCounts["purged run"]++
			// An imported run may have no head.
			if head := m.tasks[store.HeadID(store.KeyOf(x.ID))]; head != nil && head.Runs == 1 && head.Due <= m.now {
				delete(m.tasks, head.ID)
			}
			delete(m.tasks, x.ID)
			return store.Removed
		}
	}
	return store.Absent
}
