package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A model is a plain map of what a shard must contain. It is told every command in the
// order in which the store carried them out, and judges each answer.
type model struct {
	failer        failer
	list          func(f store.Filter) []store.Entry // all entries of the store that match
	now           store.Time                         // when the present command is carried out
	tasks         map[string]*modelTask
	senders       map[string]*modelSender
	paused        bool
	lastToken     int64
	latestVersion int64 // of the entries seen so far
	limits        map[string]*modelLimit
	groupsFullAt  map[modelGroup]store.Time // as modelLimit.fullAt, for groups of limited handlers
	behind        map[modelGroup]bool       // groups of which no task was claimed since SetLimit
	// pausedHandlers are the handlers that are paused.
	pausedHandlers map[string]store.HandlerPause
	sets           map[string]modelSet
	wakesReliably  bool                    // the store loses no wake-ups, so workers need no regular claims
	wakes          func() int              // how often the store has woken the workers; nil: unknown
	claimers       map[string]modelClaimer // by sender
	ready          map[string]readyTask    // by id, after the latest command
	owed           []owedWake
	counters       store.Counters // the expected Stats.Counters
	caseCounts     map[string]int // how often each case happened
}

// A modelTask is the expected state of a task.
type modelTask struct {
	store.Entry
	lease time.Duration
	// newVersion says that the Version is unknown, but higher than versionBefore.
	newVersion    bool
	versionBefore int64
}

// A modelSender is the latest command of a sender, with its answer.
type modelSender struct {
	number   int64
	late     bool // refused because of its deadline
	outcomes []store.Outcome
	answer   store.Answer
}

func newModel(f failer, list func(f store.Filter) []store.Entry) *model {
	return &model{
		failer: f, list: list, tasks: make(map[string]*modelTask), senders: make(map[string]*modelSender),
		limits: make(map[string]*modelLimit), pausedHandlers: make(map[string]store.HandlerPause), groupsFullAt: make(map[modelGroup]store.Time), behind: make(map[modelGroup]bool),
		sets: make(map[string]modelSet), claimers: make(map[string]modelClaimer), caseCounts: make(map[string]int),
	}
}

func (m *model) check(ok bool, format string, args ...any) {
	if !ok {
		m.failer.Helper()
		m.failer.Fatalf(format, args...)
	}
}

func (t *modelTask) startLease(now store.Time, r *store.Round) {
	t.lease, t.At = r.Lease, now.Add(r.Lease)
}

// restartTimes starts all leases and rates again, as after a step of the clock.
func (m *model) restartTimes() {
	m.owed = nil
	clear(m.claimers) // they look at the clock within a minute
	for _, l := range m.limits {
		l.fullAt = 0
	}
	clear(m.groupsFullAt)
	for _, t := range m.tasks {
		if t.State == store.Running {
			t.At = m.now.Add(t.lease)
		}
	}
}

// admit checks the error of a command. It returns the answer of the same command if it
// was sent before. isNew is false if the command had no effect.
func (m *model) admit(s *store.Stamp, err error) (last *modelSender, isNew bool) {
	last = m.senders[s.Sender]
	m.checkWakes()
	var want error
	switch {
	case last != nil && s.Number < last.number:
		want = store.ErrStale
		m.caseCounts["overtaken"]++
	case last != nil && s.Number == last.number && last.late:
		want = store.ErrLate
	case last != nil && s.Number == last.number:
	case s.Until != 0 && m.now > s.Until:
		want = store.ErrLate
		m.caseCounts["late"]++
		m.senders[s.Sender] = &modelSender{number: s.Number, late: true}
	default:
		isNew = true
	}
	m.check(errors.Is(err, want), "command %d of %s: the error is %v, want %v", s.Number, s.Sender, err, want)
	if want != nil {
		return nil, false
	}
	return last, isNew
}

// judgeChange judges the outcomes of a command, and reports whether it took effect now.
func (m *model) judgeChange(s *store.Stamp, c *store.Command, outcomes []store.Outcome, err error) (isNew bool) {
	last, isNew := m.admit(s, err)
	if !isNew {
		if last != nil {
			equal(m.failer, "outcomes once more", outcomes, last.outcomes)
			m.caseCounts["repeated command"]++
		}
		return false
	}
	var want []store.Outcome
	switch c.Op {
	case store.Pause:
		m.paused = true
	case store.Resume:
		m.paused = false
	}
	if c.Op == store.Sync {
		want = m.sync(c.Items)
	} else {
		for _, x := range c.Items {
			want = append(want, m.changeItem(c, x))
		}
	}
	equal(m.failer, "outcomes", outcomes, want)
	m.noteReady(s.Sender)
	m.senders[s.Sender] = &modelSender{number: s.Number, outcomes: want}
	return true
}

// changeItem applies a command to one task of the model, which then may have a new version.
func (m *model) changeItem(c *store.Command, x store.Item) store.Outcome {
	o := m.applyItem(c, x)
	if t := m.tasks[x.ID]; t != nil && t.State != store.Past && o != store.Absent && o != store.Kept && o != store.Changed {
		m.touch(t)
	}
	m.caseCounts[o.String()]++
	return o
}

// judgeRound judges the answer to a round, and reports whether it took effect now.
func (m *model) judgeRound(s *store.Stamp, r *store.Round, a *store.Answer, err error) (isNew bool) {
	last, isNew := m.admit(s, err)
	if !isNew {
		if last != nil {
			m.judgeRepeatedRound(r, a, &last.answer)
			m.noteClaim(s.Sender, r, a)
		}
		return false
	}
	equal(m.failer, "now", a.Now, m.now)
	var receipts []store.Receipt
	for _, x := range r.Reports {
		receipts = append(receipts, m.applyReport(x))
	}
	equal(m.failer, "receipts", a.Receipts, receipts)
	var leases []store.Extension
	for _, h := range r.Extend {
		leases = append(leases, m.extendLease(h, r))
	}
	equal(m.failer, "leases", a.Extensions, leases)
	if r.Claim.Asked {
		m.endExpired(r.MaxCrashes)
	}
	m.checkClaimed(r, a)
	m.noteClaim(s.Sender, r, a)
	m.noteReady(s.Sender)
	answer := *a
	answer.Receipts, answer.Extensions, answer.Tasks = receipts, leases, slices.Clone(a.Tasks)
	m.senders[s.Sender] = &modelSender{number: s.Number, answer: answer}
	return true
}

func (m *model) judgeRepeatedRound(r *store.Round, a, first *store.Answer) {
	equal(m.failer, "reports once more", a.Receipts, first.Receipts)
	equal(m.failer, "leases once more", a.Extensions, first.Extensions)
	var want []store.Claimed
	for _, c := range first.Tasks {
		if t := m.findLeased(leaseOf(c)); t != nil && t.At > m.now {
			t.startLease(m.now, r)
			want = append(want, c)
		}
	}
	equal(m.failer, "tasks once more", withoutFollowing(a.Tasks), withoutFollowing(want))
	m.caseCounts["repeated round"]++
	if len(want) > 0 {
		m.caseCounts["repeated claim with tasks"]++
	}
}

// expected returns the entries and the numbers that the shard must have. The Unknown tasks
// are not counted.
func (m *model) expected() (all []store.Entry, st store.Stats) {
	all = make([]store.Entry, 0, len(m.tasks))
	for _, t := range m.tasks {
		if t.HasExpired(m.now) {
			continue
		}
		all = append(all, m.withPause(t.Entry))
		switch t.State {
		case store.Pending:
			st.Pending++
			if t.At <= m.now && !t.Waits() {
				st.Overdue++
				st.Late = max(st.Late, m.now.Sub(t.At))
			}
		case store.Running:
			st.Running++
		case store.Dead:
			st.Dead++
		case store.Past:
			st.Past++
		}
	}
	for h, l := range m.limits {
		if st.Limits == nil {
			st.Limits = make(map[string]store.Limit)
		}
		st.Limits[h] = l.Limit
	}
	if len(m.pausedHandlers) > 0 {
		st.PausedHandlers = maps.Clone(m.pausedHandlers)
	}
	st.Paused, st.Counters = m.paused, m.counters
	return all, st
}

// withPause returns an entry with HandlerPaused, as the store returns it.
func (m *model) withPause(e store.Entry) store.Entry {
	_, paused := m.pausedHandlers[e.Handler]
	e.HandlerPaused = paused && e.State == store.Pending
	return e
}

func (m *model) compareEntries(got, want []store.Entry) {
	for i := range max(len(got), len(want)) {
		m.check(i < len(got), "the store does not have %+v", want[min(i, len(want)):])
		m.check(i < len(want), "the store has the unexpected %+v", got[min(i, len(got)):])
		m.adoptVersion(&got[i])
		if t := m.tasks[want[i].ID]; t != nil {
			want[i].Version = t.Version
		}
		equal(m.failer, "an entry", got[i], want[i])
	}
}

// A Judge follows one shard of a store that others use, such as the workers and clients of
// a simulation. It compares every answer and the stored data with the model of the package's
// own model test.
//
// The caller must tell the Judge every command that reaches the shard, in the order in which
// the store carries them out. The Judge expects that the store loses no wake-ups. A Judge is
// not safe for concurrent use.
type Judge struct{ m *model }

// NewJudge returns a Judge of an empty shard. The Judge calls fail at the first difference;
// fail must not return. list returns all entries of the shard that match a filter. wakes
// returns how often the store has woken the shard's workers: a wake-up must be counted before
// time passes.
func NewJudge(fail func(difference string), list func(store.Filter) []store.Entry, wakes func() int) *Judge {
	m := newModel(failFunc(fail), list)
	m.wakesReliably, m.wakes = true, wakes
	return &Judge{m}
}

type failFunc func(difference string)

func (f failFunc) Helper()                           {}
func (f failFunc) Fatalf(format string, args ...any) { f(fmt.Sprintf(format, args...)) }

// Change judges the answer to a command that reached the store at now. It reports whether
// the command took effect, and was not refused or repeated.
func (j *Judge) Change(now store.Time, s store.Stamp, c store.Command, outcomes []store.Outcome, err error) (isNew bool) {
	j.m.now = now
	return j.m.judgeChange(&s, &c, outcomes, err)
}

// Do judges the answer to a round, with the reports that Round.More has added. It reports
// the same as Change.
func (j *Judge) Do(now store.Time, s store.Stamp, r store.Round, a store.Answer, err error) (isNew bool) {
	j.m.now = now
	return j.m.judgeRound(&s, &r, &a, err)
}

// See tells the Judge the Version of an entry. It must know it before a command with
// IfVersion.
func (j *Judge) See(e store.Entry) { j.m.adoptVersion(&e) }

// ClockWasSet tells the Judge, before the first command after a step of the wall clock, that
// the store starts all leases and rates again.
func (j *Judge) ClockWasSet(now store.Time) {
	j.m.now = now
	j.m.restartTimes()
}

// Compare compares all entries of the shard, as list returns them, and its Stats at now.
func (j *Judge) Compare(now store.Time, stats store.Stats) {
	j.m.now = now
	j.m.checkWakes()
	all, want := j.m.expected()
	j.m.compareEntries(j.m.list(store.Filter{}), expectedList(all, store.Filter{}))
	stats.Unknown = 0
	equal(j.m.failer, "the numbers", stats, want)
}

// Leased returns the expected entry of the running task with a token, and whether there is
// one.
func (j *Judge) Leased(token int64) (e store.Entry, ok bool) {
	for _, t := range j.m.tasks {
		if t.State == store.Running && t.Token == token {
			return t.Entry, true
		}
	}
	return e, false
}

// Entries returns all expected entries in the order of a list. They share memory with the
// Judge.
func (j *Judge) Entries() []store.Entry {
	all, _ := j.m.expected()
	return expectedList(all, store.Filter{})
}

// Limits returns the expected limits by handler, and Paused whether the shard is paused.
func (j *Judge) Limits() map[string]store.Limit {
	_, st := j.m.expected()
	return st.Limits
}

// Paused reports whether the shard must be paused.
func (j *Judge) Paused() bool { return j.m.paused }
