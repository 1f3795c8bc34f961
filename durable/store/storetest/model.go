package storetest

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// The model test sends random commands and rounds to one shard under a virtual clock.
// Its clients and workers race, crash, and repeat commands as if an answer were lost.
// After each step the test compares the store with a map of the expected entries.

// A modelTask is the expected state of a task.
type modelTask struct {
	store.Entry
	ranAlone bool // the worker ran nothing else
}

// A sentCommand is a command or a round that was sent, with its answer.
type sentCommand struct {
	stamp    store.Stamp
	command  *store.Command
	round    *store.Round
	outcomes []store.Outcome
	answer   store.Answer
}

// A believedLease is a lease that a worker believes it holds. The store may have ended the
// lease already.
type believedLease struct {
	store.Lease
	due store.Time
}

type model struct {
	*storeTest
	rng            *rand.Rand
	now            store.Time
	tasks          map[string]*modelTask
	believedLeases []believedLease
	sentBySender   map[string][]sentCommand // what each sender has sent
	lastNumber     int64
	paused         bool
	lastToken      int64
	limits         map[string]*modelLimit
	wakesReliably  bool           // the store loses no wake-ups, so workers need no regular claims
	counters       store.Counters // the expected Stats.Counters
	caseCounts     map[string]int // how often each case happened
	walk           *walk          // nil if no walk is under way
}

const (
	modelSteps   = 10_000
	modelLease   = time.Millisecond
	modelCrashes = 2
)

func envUint(b *storeTest, name string, defaultValue uint64) uint64 {
	s := os.Getenv(name)
	if s == "" {
		return defaultValue
	}
	n, err := strconv.ParseUint(s, 10, 64)
	b.requireNoError(err)
	return n
}

func testModel(b *storeTest) {
	if b.Advance == nil {
		b.Skip("the model needs a clock that it can move")
	}
	seed := envUint(b, "TICKLESS_SEED", uint64(time.Now().UnixNano()))
	b.Logf("TICKLESS_SEED=%d", seed)
	m := &model{
		storeTest:    b,
		rng:          rand.New(rand.NewPCG(seed, 0)),
		tasks:        make(map[string]*modelTask),
		sentBySender: make(map[string][]sentCommand),
		limits:       make(map[string]*modelLimit),
		caseCounts:   make(map[string]int),
	}
	m.wakesReliably = b.sendRound(b.claimRound(0)).Next < 0
	steps := envUint(b, "TICKLESS_MODEL", uint64(cmp.Or(b.Steps, modelSteps)))
	for range steps {
		b.Advance(time.Duration(m.rng.IntN(200)) * time.Microsecond)
		m.now = b.now()
		m.randomStep()
		m.compareWithStore()
	}
	b.Log(m.caseCounts)
	if steps < modelSteps {
		return
	}
	if m.Reopen != nil {
		b.require(m.caseCounts["reopened"] > 0, "the store was never reopened")
	}
	for _, what := range []string{
		"created", "replaced", "kept", "following", "moved", "removed", "stopping", "absent",
		"late", "overtaken", "repeated command", "repeated round", "repeated claim with tasks",
		"claimed", "claimed with rooms", "suspects left", "unknown left", "crashed", "refused", "extended", "lost",
		"done", "done, repeats", "retried", "died", "run died", "run died again", "dropped", "handed back", "handed back for later",
		"followed", "forgotten", "filtered", "walked", "walked by prefix",
		"paused", "stays paused", "resumed", "same", "kept run", "trimmed",
		"followed by another generation", "moved to another generation", "requeued as another generation",
		"limited", "kept by concurrency",
	} {
		b.require(m.caseCounts[what] > 0, "%q never happened", what)
	}
	if steps < 10*modelSteps {
		return
	}
	for _, what := range []string{ // rare
		"poison beside others", "poison that repeats", "poisoned", "kept run in place of another", "stopped", "unique", "kept by rate", "limited again",
	} {
		b.require(m.caseCounts[what] > 0, "%q never happened", what)
	}
}

func (m *model) randomStep() {
	switch n := m.rng.IntN(100); {
	case n < 40:
		m.randomCommand()
	case n < 89:
		m.randomRound()
	case n < 93:
		m.resend()
	case n < 95:
		m.believedLeases = nil // all workers crash and forget their tasks
	case n < 96:
		op := store.Pause
		if m.paused {
			op = store.Resume
		}
		m.sendAndApply(store.Command{Op: op}, func() []store.Outcome {
			m.paused = !m.paused
			return nil
		})
	case n < 97:
		m.setRandomLimit()
	case n < 98 && m.Reopen != nil:
		m.reopen()
		m.caseCounts["reopened"]++
	default:
		m.Advance(3 * modelLease)
		m.now = m.storeTest.now()
	}
}

func (m *model) randomKey() string { return "k" + strconv.Itoa(m.rng.IntN(12)) }

// randomWhen returns a random When, and the point in time that it means.
func (m *model) randomWhen() (store.When, store.Time) {
	d := m.rng.Int64N(2000)
	if m.rng.IntN(2) == 0 {
		return store.After(time.Duration(d) * time.Microsecond), m.now + store.Time(d)
	}
	at := m.now + store.Time(d) - 1000
	return store.At(at), at
}

// nextStamp returns the next stamp of a sender.
func (m *model) nextStamp(sender string) store.Stamp {
	m.lastNumber += 1 + m.rng.Int64N(3)
	s := store.Stamp{Sender: sender, Number: m.lastNumber}
	if m.rng.IntN(6) == 0 {
		s.Until = m.now + store.Time(m.rng.IntN(100))
	}
	return s
}

// sendTooLate sometimes sends a copy of the command with a deadline that has passed.
func (m *model) sendTooLate(send func(until store.Time) error) {
	if m.rng.IntN(8) == 0 {
		m.requireError(send(m.now-1), store.ErrLate)
		m.caseCounts["late"]++
		m.compareWithStore()
	}
}

// resend repeats the last two commands of a sender, possibly after their deadlines. The
// last command must get the same answer. The earlier command must be refused.
func (m *model) resend() {
	if len(m.sentBySender) == 0 {
		return
	}
	var names []string
	for name := range m.sentBySender {
		names = append(names, name)
	}
	slices.Sort(names)
	commands := m.sentBySender[names[m.rng.IntN(len(names))]]
	m.sendAgain(commands[len(commands)-1])
	if n := len(commands); n > 1 {
		x := commands[n-2]
		var err error
		if x.command != nil {
			_, err = m.Store.Change(ctx, 0, x.stamp, *x.command)
		} else {
			_, err = m.Store.Do(ctx, 0, x.stamp, *x.round)
		}
		m.requireError(err, store.ErrStale)
		m.caseCounts["overtaken"]++
	}
}

// recordSent records a sent command for resend, and sometimes repeats it at once.
func (m *model) recordSent(x sentCommand) {
	m.sentBySender[x.stamp.Sender] = append(m.sentBySender[x.stamp.Sender], x)
	if m.rng.IntN(4) == 0 {
		m.sendAgain(x)
	}
}

func (m *model) sendAgain(x sentCommand) {
	if x.command != nil {
		outcomes, err := m.Store.Change(ctx, 0, x.stamp, *x.command)
		m.requireNoError(err)
		equal(m.storeTest, "outcomes once more", outcomes, x.outcomes)
		m.caseCounts["repeated command"]++
		return
	}
	a, err := m.Store.Do(ctx, 0, x.stamp, *x.round)
	m.requireNoError(err)
	equal(m.storeTest, "reports once more", a.Receipts, x.answer.Receipts)
	equal(m.storeTest, "leases once more", a.Extensions, x.answer.Extensions)
	var want []store.Claimed
	for _, c := range x.answer.Tasks {
		if t := m.findLeased(leaseOf(c)); t != nil && t.At > m.now {
			t.At = m.now.Add(x.round.Lease)
			want = append(want, c)
		}
	}
	equal(m.storeTest, "tasks once more", a.Tasks, want)
	m.caseCounts["repeated round"]++
	if len(want) > 0 {
		m.caseCounts["repeated claim with tasks"]++
	}
}

// compareWithStore compares the model with all stored data.
func (m *model) compareWithStore() {
	m.Helper()
	want := make([]store.Entry, 0, len(m.tasks))
	var st store.Stats
	for _, t := range m.tasks {
		want = append(want, t.Entry)
		switch t.State {
		case store.Pending:
			st.Pending++
			if t.At <= m.now {
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
	m.continueWalk(want)
	f := store.Filter{}
	if m.rng.IntN(3) == 0 {
		f = m.randomFilter()
		m.caseCounts["filtered"]++
	}
	want = expectedList(want, f)
	got := m.listAll(f, 1+m.rng.IntN(20))
	for i := range max(len(got), len(want)) {
		m.require(i < len(got), "the store does not have %+v", want[min(i, len(want)-1)])
		m.require(i < len(want), "the store has the unexpected %+v", got[min(i, len(got)-1)])
		equal(m.storeTest, "an entry", got[i], want[i])
	}
	for h, l := range m.limits {
		if st.Limits == nil {
			st.Limits = make(map[string]store.Limit)
		}
		st.Limits[h] = l.Limit
	}
	st.Paused, st.Counters = m.paused, m.counters
	stats := m.stats()
	stats.Unknown = 0
	equal(m.storeTest, "the numbers", stats, st)
}
