package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Subject is an empty store for one test.
type Subject struct {
	Store store.Store
	// Advance advances the store's clock, which must not advance by itself. Nil means
	// that the store uses the system's clock. The tests then wait in real time, and the
	// model test is skipped.
	Advance func(d time.Duration)
	// SetWall sets the store's wall clock forward by d, or back if d is negative, without
	// advancing its steady clock. Nil means that the store does not use the wall clock.
	SetWall func(d time.Duration)
	// Reopen closes the latest Store and opens it again. Advance must then advance the
	// new Store's clock. Nil means that the store does not outlive its process.
	Reopen func(t *testing.T) store.Store
	// Clock is the clock that the Store reads, or nil if it reads a server's. The tests
	// make it panic.
	Clock *FaultyClock
	// Steps is the number of steps of the model test, 10,000 if zero. TICKLESS_MODEL
	// overrides it. With fewer steps, the store counts as slow: all stored data is compared
	// after every fourth step, and fewer histories are played.
	Steps int
	// Twin says that the store is another one's twin: both use the same data in turn. Tests
	// in which nothing changes that a store may remember are skipped.
	Twin bool
}

// notForTwins are the tests that Twin skips.
var notForTwins = []string{"BadInput", "ContextEndsMeanwhile", "ContextEndsTheCall", "Limits", "List", "ListOfManyHandlers", "ListOfRuns", "NothingIsShared", "OddNames", "Prefixes"}

// isBrief reports whether the test should take less time. A store with fewer than 1,000 Steps
// repeats what another test does in full.
func (b *storeTest) isBrief() bool { return testing.Short() || b.Steps > 0 && b.Steps < 1000 }

// Run tests the stores that open returns. It calls open once for each test.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			b := &storeTest{T: t, Subject: open(t)}
			if b.Twin && slices.Contains(notForTwins, x.name) {
				t.Skip("not for twins")
			}
			b.unit = time.Millisecond
			if b.Advance == nil {
				b.unit = 50 * time.Millisecond
				t.Parallel() // it waits most of the time
			}
			x.run(b)
		})
	}
}

var tests = []struct {
	name string
	run  func(b *storeTest)
}{
	{"Model", testModel},
	{"NeverEarly", testNeverEarly},
	{"DowntimeCatchesUp", testDowntime},
	{"ClockIsSet", testSettingTheClock},
	{"NextIsNotTooLate", testNextClaimTime},
	{"LeaseAndToken", play(leaseHistories)},
	{"Poison", play(poisonHistories)},
	{"PoisonRepeats", play(poisonRepeatsHistories)},
	{"SuspectStays", play(suspectHistories)},
	{"Rooms", testRooms},
	{"Spare", testSpare},
	{"ManyNames", testManyNames},
	{"Suspects", testSuspects},
	{"LastSuspects", testLastSuspects},
	{"LimitOfConcurrency", ofHandlers(testConcurrencyLimit)},
	{"LimitOfRate", ofHandlers(testRateLimit)},
	{"LimitWhileRunning", ofHandlers(testLimitWhileRunning)},
	{"LimitsAreSettings", testLimitSettings},
	{"LimitWakes", ofHandlers(testLimitWakes)},
	{"PausedTasks", play(pauseHistories)},
	{"ManyPausedTasks", testManyPausedTasks},
	{"Versions", play(versionHistories)},
	{"PausedHandlers", testPausedHandlers},
	{"ManyPausedHandlers", testManyPausedHandlers},
	{"PausedHandlerWakes", testPausedHandlerWakes},
	{"GroupConcurrency", ofGroups(testConcurrencyLimit)},
	{"GroupRate", ofGroups(testRateLimit)},
	{"GroupShare", testGroupShare},
	{"GroupSchedules", testGroupSchedules},
	{"GroupLimitWhileRunning", ofGroups(testLimitWhileRunning)},
	{"GroupWakes", ofGroups(testLimitWakes)},
	{"GroupEntries", testGroupEntries},
	{"ZombiesAreRefused", play(zombieHistories)},
	{"Reports", play(reportHistories)},
	{"FollowUps", testFollowUps},
	{"HandBacks", play(handBackHistories)},
	{"Repeating", play(repeatingHistories)},
	{"ChangedRuns", play(changeHistories)},
	{"Sets", testSets},
	{"ScheduleModes", play(modeHistories)},
	{"FollowingAndStopping", play(followingHistories)},
	{"Generations", play(generationHistories)},
	{"CancelIsFinal", play(cancelHistories)},
	{"RequeuedRuns", play(requeueHistories)},
	{"OnceHoweverOftenItIsSent", testSentAgain},
	{"OnceForADay", testRepeatedAfterADay},
	{"OnceAtOneTime", testRepeatedConcurrently},
	{"UnknownHandlers", testUnknownHandlers},
	{"WorkersAreSeen", testSeenWorkers},
	{"PauseAndResume", testPause},
	{"Batches", testBatches},
	{"Limits", testMaximumSizes},
	{"BadInput", testBadInput},
	{"OddNames", testOddNames},
	{"PanicInTheStore", testPanic},
	{"NothingIsShared", testNoSharedMemory},
	{"List", testList},
	{"ListOfManyHandlers", testListOfManyHandlers},
	{"Prefixes", testPrefixes},
	{"ListOfRuns", testListOfRuns},
	{"Expiry", testExpiry},
	{"PurgedRuns", testPurgedRuns},
	{"RunKeptAsItAsks", testRunKeptAsItAsks},
	{"Wait", testWait},
	{"WhoSleepsIsInTime", testSleepers},
	{"ContextEndsTheCall", testContextEnds},
	{"ContextEndsMeanwhile", testContextEndsMeanwhile},
	{"Repair", testRepair},
	{"Import", testImport},
	{"Reopened", testReopened},
	{"ManyWorkers", testWorkers},
}

// A storeTest is a test with its store.
type storeTest struct {
	*testing.T
	Subject
	unit       time.Duration // a time long enough to measure
	lastNumber int64         // of the last stamp
	judge      *Judge        // nil unless the model judges the test's commands and rounds
	judged     int           // how many commands and rounds
}

// startJudge makes the model judge all that change and do send, from now on.
func (b *storeTest) startJudge() {
	b.Helper()
	if b.Advance == nil {
		return // the model needs a clock that stands
	}
	m := newModel(b, func(f store.Filter) []store.Entry { return b.listWithVersions(f, store.MaxPage) })
	m.wakesReliably = b.sendRound(b.claimRound(0)).Next < 0
	b.judge = &Judge{m}
}

// compare compares the model with all stored data.
func (b *storeTest) compare() {
	b.Helper()
	if b.judge != nil {
		b.judge.Compare(b.now(), b.stats())
	}
}

// compareAtTimes calls compare, for slow stores only each fourth time.
func (b *storeTest) compareAtTimes() {
	b.Helper()
	if b.judged++; b.Steps == 0 || b.judged%4 == 0 {
		b.compare()
	}
}

// change sends a command to shard 0.
func (b *storeTest) change(s store.Stamp, c store.Command) ([]store.Outcome, error) {
	b.Helper()
	outcomes, err := b.changeOnly(s, c)
	if b.judge != nil {
		b.judge.Change(b.now(), s, c, outcomes, err)
		b.compareAtTimes()
	}
	return outcomes, err
}

// changeOnly sends a command to shard 0, without the judge. If the store returns the task with
// the outcome, Get must return the same.
func (b *storeTest) changeOnly(s store.Stamp, c store.Command) ([]store.Outcome, error) {
	b.Helper()
	var after store.Entry
	if c.Op == store.Schedule && len(c.Items) == 1 {
		c.After = &after
	}
	outcomes, err := b.Store.Change(ctx, 0, s, c)
	if err == nil && after.State != 0 {
		want, err := b.Store.Get(ctx, 0, c.Items[0].ID)
		b.requireNoError(err)
		if len(after.Record)+len(want.Record) == 0 {
			want.Record = after.Record // some stores make nil of an empty record
		}
		equal(b, "the task after its Schedule", after, want)
	}
	return outcomes, err
}

// do sends a round to shard 0.
func (b *storeTest) do(s store.Stamp, r store.Round) (store.Answer, error) {
	b.Helper()
	a, err := b.Store.Do(ctx, 0, s, r)
	if b.judge != nil {
		b.judge.Do(b.now(), s, r, a, err)
		b.compareAtTimes()
	}
	return a, err
}

// removeAll removes all tasks and dead letters.
func (b *storeTest) removeAll() {
	b.Helper()
	var running []store.Entry
	items := make(map[store.State][]store.Item)
	for _, e := range b.allEntries() {
		if items[e.State] = append(items[e.State], store.Item{ID: e.ID}); e.State == store.Running {
			running = append(running, e)
		}
	}
	remove := func(op store.Op, items []store.Item, want store.Outcome) {
		b.Helper()
		for batch := range slices.Chunk(items, store.MaxBatch) {
			for i, outcome := range b.sendCommand(store.Command{Op: op, Items: batch}) {
				equal(b, "the outcome of removing "+batch[i].ID, outcome, want)
			}
		}
	}
	remove(store.Cancel, items[store.Pending], store.Removed)
	remove(store.Cancel, items[store.Running], store.Stopping)
	remove(store.Purge, items[store.Dead], store.Removed)
	for _, e := range running {
		x := store.Claimed{Task: e.Task, Token: e.Token}
		equal(b, "the receipt of a running task", b.sendReport(x, store.HandBack, store.When{}), store.Overtaken)
	}
}

var ctx = context.Background()

// withoutFollowing returns tasks without Following: a repeated claim has the latest value.
func withoutFollowing(tasks []store.Claimed) (out []store.Claimed) {
	for _, x := range tasks {
		x.Following = false
		out = append(out, x)
	}
	return out
}

// leaseUnits is how long leases last, in units.
const leaseUnits = 20

func (b *storeTest) sleep(units int) {
	d := time.Duration(units) * b.unit
	if b.Advance != nil {
		b.Advance(d)
	} else {
		time.Sleep(d)
	}
}

func (b *storeTest) after(units int) store.When { return store.After(time.Duration(units) * b.unit) }

func (b *storeTest) now() store.Time {
	b.Helper()
	now, err := b.Store.Now(ctx, 0)
	b.requireNoError(err)
	return now
}

// stamp returns the first stamp of a new sender.
func (b *storeTest) stamp() store.Stamp {
	b.lastNumber++
	return store.Stamp{Sender: fmt.Sprint("test", b.lastNumber), Number: b.lastNumber}
}

func (b *storeTest) requireNoError(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *storeTest) requireError(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("the error is %v, want %v", err, want)
	}
}

// A failer is told what is wrong. Fatalf does not return.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func equal[T any](b failer, what string, got, want T) {
	b.Helper()
	if !reflect.DeepEqual(got, want) {
		b.Fatalf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func (b *storeTest) require(ok bool, format string, args ...any) {
	b.Helper()
	if !ok {
		b.Fatalf(format, args...)
	}
}

// task returns a task with this id for the handler h.
func task(id string) store.Task {
	return store.Task{ID: id, Handler: "h", Record: []byte("record of " + id)}
}

func item(id string, w store.When) store.Item { return store.Item{ID: id, When: w, Task: task(id)} }

func (b *storeTest) sendCommand(c store.Command) []store.Outcome {
	b.Helper()
	outcomes, err := b.change(b.stamp(), c)
	b.requireNoError(err)
	return outcomes
}

// requireInvalid sends a command that the store must refuse.
func (b *storeTest) requireInvalid(c store.Command) {
	b.Helper()
	_, err := b.Store.Change(ctx, 0, b.stamp(), c)
	b.requireError(err, store.ErrInvalid)
	b.requireError(err, store.ErrNotDone)
}

func (b *storeTest) changeTask(op store.Op, id string, w store.When) store.Outcome {
	b.Helper()
	x := store.Item{ID: id, When: w}
	if op == store.Schedule {
		x.Task = task(id)
	}
	return b.sendCommand(store.Command{Op: op, Items: []store.Item{x}})[0]
}

func (b *storeTest) schedule(id string, w store.When) {
	b.Helper()
	equal(b, "schedule "+id, b.changeTask(store.Schedule, id, w), store.Created)
}

// emptyRound returns a round without reports, extensions and claim.
func (b *storeTest) emptyRound() store.Round {
	return store.Round{Lease: leaseUnits * b.unit, MaxCrashes: 3}
}

func (b *storeTest) claimRound(n int) store.Round {
	r := b.emptyRound()
	r.Claim = store.Claim{Asked: true, Max: n, Suspects: n, OnlySuspect: true, Handlers: []string{"h"}}
	return r
}

func (b *storeTest) sendRound(r store.Round) store.Answer {
	b.Helper()
	a, err := b.do(b.stamp(), r)
	b.requireNoError(err)
	return a
}

func (b *storeTest) claim(n int) []store.Claimed {
	b.Helper()
	return b.sendRound(b.claimRound(n)).Tasks
}

// claimOne claims a task and checks that it is the only one, with this id.
func (b *storeTest) claimOne(id string) store.Claimed {
	b.Helper()
	got := b.claim(10)
	b.require(len(got) == 1 && got[0].ID == id, "claimed %+v, want %s alone", got, id)
	return got[0]
}

func (b *storeTest) claimNone() {
	b.Helper()
	if got := b.claim(10); len(got) > 0 {
		b.Fatalf("claimed %+v, want nothing", got)
	}
}

func leaseOf(x store.Claimed) store.Lease { return store.Lease{ID: x.ID, Token: x.Token} }

// report reports the end of an attempt, and returns false if the report was refused.
func (b *storeTest) report(x store.Claimed, end store.End, next store.When) bool {
	b.Helper()
	return b.sendReport(x, end, next) != store.Refused
}

// sendReport reports the end of an attempt, and returns the store's receipt.
func (b *storeTest) sendReport(x store.Claimed, end store.End, next store.When) store.Receipt {
	b.Helper()
	r := b.emptyRound()
	r.Reports = []store.Report{{Lease: leaseOf(x), End: end, Next: next, Due: x.Due, Text: "text"}}
	a := b.sendRound(r)
	b.require(len(a.Receipts) == 1, "%d receipts for one report", len(a.Receipts))
	return a.Receipts[0]
}

// reportKept is report for a task that keeps its finished runs, or has follow-ups.
func (b *storeTest) reportKept(x store.Claimed, end store.End, next store.When) {
	b.Helper()
	r := b.emptyRound()
	r.Reports = []store.Report{{Lease: leaseOf(x), End: end, Next: next, Due: x.Due, Text: "text", Keep: true, Result: []byte("\xff\x00")}}
	equal(b, "receipt", b.sendRound(r).Receipts[0], store.Accepted)
}

func (b *storeTest) extend(x store.Claimed) store.Extension {
	b.Helper()
	r := b.emptyRound()
	r.Extend = []store.Lease{leaseOf(x)}
	a := b.sendRound(r)
	b.require(len(a.Extensions) == 1, "%d answers to one extension", len(a.Extensions))
	return a.Extensions[0]
}

// getEntry returns an entry, without its Version.
func (b *storeTest) getEntry(id string) store.Entry {
	b.Helper()
	e, err := b.Store.Get(ctx, 0, id)
	b.requireNoError(err)
	e.Version = 0
	return e
}

func (b *storeTest) version(id string) int64 {
	b.Helper()
	e, err := b.Store.Get(ctx, 0, id)
	b.requireNoError(err)
	return e.Version
}

func (b *storeTest) requireAbsent(id string) {
	b.Helper()
	_, err := b.Store.Get(ctx, 0, id)
	b.requireError(err, store.ErrNotFound)
}

func (b *storeTest) stats() store.Stats {
	b.Helper()
	st, err := b.Store.Stats(ctx, 0)
	b.requireNoError(err)
	return st
}

// listAll lists all entries that match a filter, without their Versions, with at most limit
// entries on a page.
func (b *storeTest) listAll(f store.Filter, limit int) []store.Entry {
	b.Helper()
	entries := b.listWithVersions(f, limit)
	for i := range entries {
		entries[i].Version = 0
	}
	return entries
}

func (b *storeTest) listWithVersions(f store.Filter, limit int) []store.Entry {
	b.Helper()
	var entries []store.Entry
	for c := (store.Cursor{}); ; {
		p, err := b.Store.List(ctx, 0, f, c, limit)
		b.requireNoError(err)
		b.require(len(p.Entries) <= limit, "%d entries on a page of %d", len(p.Entries), limit)
		entries = append(entries, p.Entries...)
		if p.Next == (store.Cursor{}) {
			return entries
		}
		b.require(f.Compare(p.Next, c) > 0, "the cursor does not advance: from %v to %v", c, p.Next)
		c = p.Next
	}
}
