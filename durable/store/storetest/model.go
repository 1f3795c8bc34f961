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
// The test compares each answer, and after each step all stored data, with a map of the
// expected entries. Reading all data takes most of the time in a slow store: with few steps,
// the test does so after every fourth one, and makes more steps in the same time.

// A sentCommand is a command or a round that was sent.
type sentCommand struct {
	stamp   store.Stamp
	command *store.Command
	round   *store.Round
}

// A believedLease is a lease that a worker believes it holds. The store may have ended the
// lease already.
type believedLease struct {
	store.Lease
	due store.Time
}

type modelTest struct {
	*storeTest
	*model
	rng            *rand.Rand
	believedLeases []believedLease
	sentBySender   map[string][]sentCommand // what each sender has sent
	lastNumber     int64
	walk           *walk // nil if no walk is under way
}

const (
	modelSteps = 10_000
	modelLease = time.Millisecond
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
	m := &modelTest{
		storeTest:    b,
		model:        newModel(b, func(f store.Filter) []store.Entry { return b.listWithVersions(f, store.MaxPage) }),
		rng:          rand.New(rand.NewPCG(seed, 0)),
		sentBySender: make(map[string][]sentCommand),
	}
	m.wakesReliably = b.sendRound(b.claimRound(0)).Next < 0
	b.judge = &Judge{m.model}
	steps := envUint(b, "TICKLESS_MODEL", uint64(cmp.Or(b.Steps, modelSteps)))
	for i := range steps {
		b.Advance(time.Duration(m.rng.IntN(200)) * time.Microsecond)
		m.model.now = b.now()
		m.randomStep()
		if steps >= modelSteps || i%4 == 0 {
			m.compareWithStore()
		}
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
		"follow-up of a success", "follow-up of a failure", "paused", "stays paused", "resumed", "same", "kept run", "trimmed",
		"moved to another generation", "requeued as another generation",
		"limited", "kept by concurrency", "kept by a paused handler", "changed", "of its version", "a paused task waits", "a paused task runs once", "scheduled paused", "resumed late", "limited by group",
		"over", "new content for a running task", "new content for a run that stays",
		"new content after an attempt", "a run that stays is earlier", "a run that stays is followed", "a run keeps its time",
		"followed after the run", "run died and is followed", "imported", "an older set",
	} {
		b.require(m.caseCounts[what] > 0, "%q never happened", what)
	}
	if steps < 10*modelSteps {
		return
	}
	for _, what := range []string{ // rare
		"kept by a group's concurrency", "last suspect waits", "poison that repeats", "poisoned", "kept run in place of another", "stopped", "unique", "kept by rate", "limited again", "kept by a group's rate",
		"over and removed", "over after the run", "a run of a set moves", "a running task is paused", "a set loses a task", "followed by another generation",
	} {
		b.require(m.caseCounts[what] > 0, "%q never happened", what)
	}
}

func (m *modelTest) randomStep() {
	if m.paused && m.rng.IntN(20) == 0 { // otherwise nothing happens half of the time
		m.sendAndApply(store.Command{Op: store.Resume})
		return
	}
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
		m.sendAndApply(store.Command{Op: op})
	case n < 97 && m.rng.IntN(2) == 0:
		m.pauseRandomHandler()
	case n < 97:
		m.setRandomLimit()
	case n < 98 && m.rng.IntN(3) == 0:
		m.importRandomEntry()
	case n < 98 && m.rng.IntN(4) > 0:
		m.syncRandomSet()
	case n < 98 && m.Reopen != nil:
		m.reopen()
		m.caseCounts["reopened"]++
	default:
		m.Advance(3 * modelLease)
		m.model.now = m.storeTest.now()
	}
}

func (m *modelTest) randomKey() string { return "k" + strconv.Itoa(m.rng.IntN(12)) }

// randomWhen returns a random When.
func (m *modelTest) randomWhen() store.When {
	d := m.rng.Int64N(2000)
	if m.rng.IntN(2) == 0 {
		return store.After(time.Duration(d) * time.Microsecond)
	}
	return store.At(m.model.now + store.Time(d) - 1000)
}

// nextStamp returns the next stamp of a sender.
func (m *modelTest) nextStamp(sender string) store.Stamp {
	m.lastNumber += 1 + m.rng.Int64N(3)
	s := store.Stamp{Sender: sender, Number: m.lastNumber}
	if m.rng.IntN(6) == 0 {
		s.Until = m.model.now + store.Time(m.rng.IntN(100))
	}
	return s
}

// sendTooLate sometimes sends a copy of the command with a deadline that has passed. The
// command then gets another number.
func (m *modelTest) sendTooLate(x *sentCommand) {
	if m.rng.IntN(8) == 0 {
		late := *x
		late.stamp.Until = m.model.now - 1
		m.send(late)
		late.stamp.Until = x.stamp.Until
		m.send(late)
		m.compareWithStore()
		x.stamp = m.nextStamp(x.stamp.Sender)
	}
}

// resend repeats the last two commands of a sender, possibly after their deadlines.
func (m *modelTest) resend() {
	if len(m.sentBySender) == 0 {
		return
	}
	var names []string
	for name := range m.sentBySender {
		names = append(names, name)
	}
	slices.Sort(names)
	commands := m.sentBySender[names[m.rng.IntN(len(names))]]
	n := len(commands)
	m.send(commands[n-1])
	if n > 1 {
		m.send(commands[n-2])
	}
}

// recordSent records a sent command for resend, and sometimes repeats it at once.
func (m *modelTest) recordSent(x sentCommand) {
	m.sentBySender[x.stamp.Sender] = append(m.sentBySender[x.stamp.Sender], x)
	if m.rng.IntN(4) == 0 {
		m.send(x)
	}
}

// compareWithStore compares the model with all stored data.
func (m *modelTest) compareWithStore() {
	m.Helper()
	all, st := m.expected()
	m.continueWalk(all)
	f := store.Filter{}
	if m.rng.IntN(3) == 0 {
		f = m.randomFilter()
		m.caseCounts["filtered"]++
	}
	m.compareEntries(m.listWithVersions(f, 1+m.rng.IntN(20)), expectedList(all, f))
	stats := m.stats()
	stats.Unknown = 0
	equal(m.storeTest, "the numbers", stats, st)
}
