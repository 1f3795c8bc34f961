package machine

import (
	"math"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A machine is the state of one transaction.
type machine struct {
	index       Index
	numbers     *Numbers
	now         store.Time
	freedLimits []*Limit // limits that held back a task until an attempt ended in this round
	keptRuns    int
	expiry      store.Time // when a claim should delete expired entries, or Never

	claim       *Claim            // what the round's worker can run; nil without a claim
	touched     map[GroupKey]bool // the groups that this transaction has changed
	unparked    []*Task           // the tasks that it has unparked
	heldByGroup bool              // the Concurrency of a group holds back a due task
}

// minClockStep is how far the wall clock must move, compared with the steady clock, to
// count as set.
const minClockStep = time.Second

// beginTransaction returns a new machine. If the wall clock was set since the last
// transaction, all leases and rates start again.
func beginTransaction(index Index, at Moment) *machine {
	m := &machine{index: index, numbers: index.Numbers(), now: at.Wall, expiry: Never}
	clockStep := at.Wall.Sub(m.numbers.Wall)
	if at.Boot == m.numbers.Boot {
		clockStep -= at.Steady - m.numbers.Steady
	} else {
		clockStep = min(clockStep, 0) // after a restart of the steady clock, it is unknown how much time has passed
	}
	if m.numbers.Wall != 0 && (clockStep > minClockStep || clockStep < -minClockStep) {
		for _, t := range index.Running(Never) {
			m.setState(t, store.Running, m.now.Add(t.Lease))
		}
		m.resetRates()
		m.settleAndWake()
	}
	m.numbers.Moment = at
	return m
}

// senderLifetime is how long a silent sender is remembered.
const senderLifetime = 24 * time.Hour

// admitCommand decides whether a command may be carried out. If it was already carried out,
// repeated is true and sender has the answer. Otherwise sender is a new record.
func (m *machine) admitCommand(s *store.Stamp) (sender *Sender, repeated bool, err error) {
	lastCommand := m.index.Sender(s.Sender)
	switch {
	case lastCommand != nil && s.Number < lastCommand.Number:
		return nil, false, store.ErrStale
	case lastCommand != nil && s.Number == lastCommand.Number:
		if lastCommand.Late {
			return nil, false, store.ErrLate
		}
		m.rememberSender(s, lastCommand)
		return lastCommand, true, nil
	}
	sender = &Sender{Number: s.Number, Late: s.Until != 0 && m.now > s.Until}
	if lastCommand != nil {
		sender.Claim = lastCommand.Claim
	}
	switch {
	case sender.Late: // it stays late if the clock is set back
		m.rememberSender(s, sender)
		return nil, false, store.ErrLate
	case lastCommand != nil:
		return sender, false, nil
	}
	// Each new sender removes up to 8 senders that were silent for a day. While the
	// store is paused, silent workers are not removed: they have nothing to claim.
	for _, name := range m.index.Gone(m.now.Add(-senderLifetime), 8) {
		if !m.numbers.Paused || m.index.Sender(name).Claim == nil {
			m.index.Remember(name, nil)
		}
	}
	return sender, false, nil
}

func (m *machine) rememberSender(s *store.Stamp, sender *Sender) {
	sender.Seen = m.now
	m.index.Remember(s.Sender, sender)
}

// Change carries out a command that has passed its Check. The Index may keep the items,
// so the caller must not change them.
func Change(index Index, at Moment, s *store.Stamp, c *store.Command) ([]store.Outcome, error) {
	m := beginTransaction(index, at)
	sender, repeated, err := m.admitCommand(s)
	if err != nil {
		return nil, err
	}
	if repeated {
		return slices.Clone(sender.Outcomes), nil
	}
	if c.Op == store.Sync {
		sender.Outcomes = m.sync(c.Items)
	} else {
		sender.Outcomes = m.changeItems(c)
	}
	m.settleAndWake()
	switch c.Op {
	case store.Pause:
		m.numbers.Paused = true
	case store.Resume:
		m.numbers.Paused = false
		m.numbers.Wakes++
	}
	m.rememberSender(s, sender)
	if c.After != nil {
		*c.After = m.entryOf(c.Items[0].ID)
	}
	return slices.Clone(sender.Outcomes), nil
}

// entryOf returns what Get returns for an id, or an entry without a State if there is no task.
func (m *machine) entryOf(id string) (e store.Entry) {
	if t := m.index.Find(id); t != nil {
		e = CopyEntry(t.Entry)
		if m.numbers.Limits > 0 {
			NotePause(&e, m.index.Limits())
		}
	}
	return e
}

// Schedule carries out a Schedule command without a stamp, as the only command of a
// transaction. The Index may keep the items.
func Schedule(index Index, at Moment, c *store.Command) []store.Outcome {
	m := beginTransaction(index, at)
	outcomes := m.changeItems(c)
	m.settleAndWake()
	return outcomes
}

func (m *machine) changeItems(c *store.Command) (outcomes []store.Outcome) {
	for i := range c.Items {
		outcomes = append(outcomes, m.changeItem(c, &c.Items[i]))
	}
	return outcomes
}

func (m *machine) changeItem(c *store.Command, x *store.Item) store.Outcome {
	t := m.index.Find(x.ID)
	at := x.When.From(m.now)
	if v := x.IfVersion; v != 0 && (t == nil && c.Op == store.Schedule || t != nil && t.Version != v) {
		return store.Changed
	}
	switch c.Op {
	case store.Schedule:
		return m.schedule(t, x, at, c.Keep)
	case store.Reschedule:
		return m.reschedule(t, x, at)
	case store.Cancel:
		return m.cancel(t)
	case store.PauseTask:
		return m.pauseTask(t)
	case store.ResumeTask:
		return m.resumeTask(t)
	case store.Requeue:
		return m.requeue(t, x, at)
	case store.Import:
		return m.importEntry(t, x.Entry)
	case store.SetLimit:
		return m.setLimit(x.ID, *x.Limit)
	case store.PauseHandler:
		return m.pauseHandler(x.ID, x.Note)
	case store.ResumeHandler:
		return m.resumeHandler(x.ID)
	}
	// Purge
	if t == nil || t.State < store.Dead || t.HasExpired(m.now) {
		return store.Absent
	}
	if t.State == store.Past {
		m.dropHead(store.KeyOf(t.ID))
	}
	m.removeTask(t)
	return store.Removed
}

func (m *machine) schedule(t *Task, x *store.Item, at store.Time, keep store.Keep) store.Outcome {
	keepsTaskDueAt := func(oldAt store.Time) bool {
		return keep == store.KeepEarlier && at >= oldAt || keep == store.KeepLater && at <= oldAt
	}
	followsAt := t != nil && t.Following && t.Next != 0
	isOver := x.IsOver(at)
	switch {
	case m.succeededRecently(&x.Task):
		return store.Kept
	case t == nil:
		if isOver {
			return store.Absent
		}
		t = m.addTask(x.Task)
		t.Paused = x.Paused
		m.renewVersion(t)
		m.makePending(t, at)
		return store.Created
	case keep == store.KeepSame && t.isSameAsNext(&x.Task):
		return store.Kept
	case keep == store.KeepAny, t.State == store.Pending && !followsAt && keepsTaskDueAt(t.At), followsAt && keepsTaskDueAt(t.Next):
		return store.Kept
	case t.State >= store.Dead && isOver:
		return store.Absent
	}
	t.Paused = t.Paused || x.Paused
	m.renewVersion(t)
	switch {
	case t.State < store.Dead && t.Repeats() && !t.Stopping && x.Task.Repeats():
		return m.changeRepeating(t, x, at)
	case t.State == store.Running:
		switch {
		case t.Following && t.Next == store.Farthest && x.Task.Repeats():
			at = t.Next // it stays paused
		case isOver:
			at = store.Never
		}
		t.NextTask, t.Following, t.Next = &x.Task, true, at
		m.index.Changed(t)
		return store.Following
	case isOver:
		m.removeTask(t)
		return store.Removed
	}
	m.touchGroup(t)
	t.Task = x.Task
	m.makePending(t, at)
	return store.Replaced
}

// changeRepeating gives a repeating task new content. A run that is due, being retried or
// running stays; at is when the task is due after it.
func (m *machine) changeRepeating(t *Task, x *store.Item, at store.Time) store.Outcome {
	newestTask := &t.Task
	if t.NextTask != nil {
		newestTask = t.NextTask
	}
	oldTimes, newTimes := newestTask.Repetition(), x.Task.Repetition()
	keepsPattern := x.Next && oldTimes.Pattern == newTimes.Pattern
	isOver := x.IsOver(at)
	followAt := func() {
		t.Following, t.Next = true, at
		if isOver {
			t.Next = store.Never
		}
	}
	if t.State == store.Running {
		switch {
		case t.Following && t.Next == store.Farthest: // it stays paused
		case !keepsPattern || oldTimes.End != newTimes.End:
			followAt()
		case !t.Following:
			t.Following, t.Next = true, 0 // as the report says
		}
		t.NextTask = &x.Task
		m.index.Changed(t)
		return store.Following
	}
	runStays := m.runStays(t)
	m.touchGroup(t)
	t.Task, t.NextTask = x.Task, nil
	switch {
	case t.At == store.Farthest: // it stays paused
		at = t.At
	case runStays && keepsPattern, keepsPattern && (newTimes.End == 0 || t.At <= newTimes.End):
		at = t.At
	case runStays && !x.Next && at <= max(m.now, t.At):
		at = min(t.At, at)
	case runStays:
		followAt()
		at = t.At
	case isOver:
		m.removeTask(t)
		return store.Removed
	default:
		m.makePending(t, at)
		return store.Replaced
	}
	m.setState(t, store.Pending, at)
	return store.Replaced
}

// runStays reports whether changes of a Pending task leave its run as it is, because the
// run is due or has begun.
func (m *machine) runStays(t *Task) bool {
	return t.Repeats() && (t.Due <= m.now || t.Attempts > 0 || t.Crashes > 0)
}

// isSameAsNext reports whether x has the same content as the key's next run: NextTask, or
// else the task itself.
func (t *Task) isSameAsNext(x *store.Task) bool {
	switch {
	case t.State >= store.Dead || t.Stopping && !t.Following:
		return false
	case t.NextTask != nil:
		return t.NextTask.Same(x)
	}
	return t.Same(x)
}

func (m *machine) reschedule(t *Task, x *store.Item, at store.Time) store.Outcome {
	switch {
	case t == nil || t.State >= store.Dead:
		return store.Absent
	}
	m.renewVersion(t)
	if t.State == store.Running {
		m.followLater(t, x.Generation, at)
		return store.Following
	}
	moved := store.Moved
	if t.Paused {
		moved = store.Once
	}
	switch {
	case t.At == store.Farthest && t.Repeats() && !t.Paused:
		t.Renew(x.Generation)
		m.makePending(t, at)
		return store.Moved
	case m.runStays(t) && at != store.Farthest:
		if at > max(m.now, t.At) {
			m.followLater(t, x.Generation, at)
			return store.Following
		}
		t.Once = t.Paused
		m.setState(t, store.Pending, min(t.At, at))
		return moved
	case t.Attempts == 0 && t.Crashes == 0:
		t.Due = at
		t.Renew(x.Generation)
	}
	t.Once = t.Paused
	m.setState(t, store.Pending, at)
	return moved
}

// followLater makes a task due at the time at when its present run is over.
func (m *machine) followLater(t *Task, generation string, at store.Time) {
	nextTask := t.Task
	if t.NextTask != nil {
		nextTask = *t.NextTask
	}
	if nextTask.Renew(generation) {
		t.NextTask = &nextTask
	}
	t.Following, t.Next = true, at
	m.index.Changed(t)
}

func (m *machine) cancel(t *Task) store.Outcome {
	switch {
	case t == nil || t.State >= store.Dead:
		return store.Absent
	case t.State == store.Running:
		if !t.Stopping {
			m.numbers.Cancelled++
		}
		m.renewVersion(t)
		t.Stopping, t.Following, t.Next, t.NextTask, t.Paused = true, false, 0, nil, false
		m.index.Changed(t)
		return store.Stopping
	}
	m.numbers.Cancelled++
	m.removeTask(t)
	return store.Removed
}

func (m *machine) pauseTask(t *Task) store.Outcome {
	switch {
	case t == nil || t.State >= store.Dead || t.Stopping && !t.Following:
		return store.Absent
	case t.Paused && !t.Once:
		return store.Kept
	}
	t.Paused, t.Once = true, false
	return m.notePause(t)
}

func (m *machine) resumeTask(t *Task) store.Outcome {
	switch {
	case t == nil || t.State >= store.Dead || t.Stopping && !t.Following:
		return store.Absent
	case !t.Paused:
		return store.Kept
	}
	t.Paused, t.Once = false, false
	return m.notePause(t)
}

// notePause stores a task that was paused or resumed.
func (m *machine) notePause(t *Task) store.Outcome {
	m.renewVersion(t)
	if t.State == store.Running {
		m.index.Changed(t)
		return store.Following
	}
	m.setState(t, store.Pending, t.At)
	return store.Moved
}

func (m *machine) requeue(t *Task, x *store.Item, at store.Time) store.Outcome {
	if t == nil || t.State != store.Dead {
		return store.Absent
	}
	if key := store.KeyOf(t.ID); t.ID == store.DeadID(key) {
		m.removeTask(t)
		requeuedRun := t.Task
		requeuedRun.Schedule, requeuedRun.ID = "", store.SingleID(key, t.Due)
		for unusedTime := m.now; m.index.Find(requeuedRun.ID) != nil; unusedTime++ {
			requeuedRun.ID = store.SingleID(key, unusedTime)
		}
		t = m.addTask(requeuedRun)
	}
	t.Renew(x.Generation)
	m.renewVersion(t)
	m.makePending(t, at)
	return store.Moved
}

// renewVersion gives a task that a command changes a new Version.
func (m *machine) renewVersion(t *Task) { t.Version = m.nextNumber() }

// nextNumber returns the next number for a token or a Version. They are at least the store's
// time, and grow even if the clock is set back.
func (m *machine) nextNumber() int64 {
	m.numbers.Fence = max(m.numbers.Fence, int64(m.now)) + 1
	return m.numbers.Fence
}

func (m *machine) importEntry(t *Task, e *store.Entry) store.Outcome {
	if t != nil {
		return store.Kept
	}
	x := e.WithoutAttempt(m.now)
	t = m.addTask(x.Task)
	t.Due, t.Attempts, t.Crashes, t.Runs, t.Failures = x.Due, x.Attempts, x.Crashes, x.Runs, x.Failures
	t.Following, t.Next, t.NextTask, t.Paused, t.Once = x.Following, x.Next, x.NextTask, x.Paused, x.Once
	t.Suspect = x.State == store.Pending && store.IsSuspect(t.Crashes, math.MaxInt)
	if x.State != store.Past {
		m.renewVersion(t)
	}
	m.setState(t, x.State, x.At)
	return store.Created
}
