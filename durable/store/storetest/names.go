package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timertest"
)

// oddNames are not names: see store.IsName.
var oddNames = []string{"\xff", "k\xff", "\xc3", "k\xed\xa0\x80", "\x00", "k\x00", "k\x00h", "k\x00r000000000001", "a\nb", "\t", "\x1b[31m", "\x7f", "k\u0085",
	strings.Repeat("k", store.MaxID+1), strings.Repeat("\xff", 1<<16)}

// Nothing can be created with a name that is not text. After each attempt the store works as
// before.
func testOddNames(b *storeTest) {
	unique := item("unique", b.after(0))
	k := store.Keeping{Unique: 1000 * b.unit, For: 1000 * b.unit}
	unique.Task.Record = k.Append([]byte{1, 0, 0, 0, 0, 0, 0, 128})
	b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{unique}})
	b.reportKept(b.claimOne("unique"), store.Done, store.When{})
	b.schedule("running", b.after(0))
	running := b.claimOne("running")
	before := b.allEntries()

	requireRefused := func(what, name string, err error) {
		b.Helper()
		b.require(errors.Is(err, store.ErrInvalid) && errors.Is(err, store.ErrNotDone), "%s with %.40q: the error is %v", what, name, err)
		b.require(len(err.Error()) < 900 && utf8.ValidString(err.Error()), "%s: the error has %d bytes: %.1000q", what, len(err.Error()), err)
	}
	for _, name := range oddNames {
		send := func(what string, c store.Command) {
			b.Helper()
			_, err := b.Store.Change(ctx, 0, b.stamp(), c)
			requireRefused(what, name, err)
		}
		for what, t := range map[string]store.Task{
			"a key":      {ID: name, Handler: "h", Record: make([]byte, 2000)},
			"a handler":  {ID: "running", Handler: name, Record: make([]byte, 2000)},
			"a schedule": {ID: "running", Handler: "h", Schedule: name},
		} {
			send(what, store.Command{Op: store.Schedule, Items: []store.Item{{ID: t.ID, When: b.after(0), Task: t}}})
			if what == "a key" && store.IsName(store.KeyOf(name)) {
				continue // the id of a dead letter or of a run
			}
			t.ID = strings.Replace(t.ID, "running", "imported", 1)
			send("import "+what, store.Command{Op: store.Import, Items: []store.Item{{ID: t.ID, Entry: &store.Entry{Task: t, State: store.Pending}}}})
			e := store.Entry{Task: task(t.ID), NextTask: &t, State: store.Running, Following: true}
			send("import next "+what, store.Command{Op: store.Import, Items: []store.Item{{ID: t.ID, Entry: &e}}})
		}
		send("a limit", store.Command{Op: store.SetLimit, Items: []store.Item{{ID: name, Limit: &store.Limit{Concurrency: 1}}}})
		_, err := b.Store.Change(ctx, 0, store.Stamp{Sender: name, Number: 1}, store.Command{Op: store.Pause})
		requireRefused("a sender", name, err)
		for i := range 2 {
			round := b.claimRound(1)
			if i == 0 {
				round.Claim.Handlers = []string{"h", name}
			} else {
				round.Claim.Schedules = []string{name}
			}
			_, err := b.Store.Do(ctx, 0, b.stamp(), round)
			requireRefused("a claim", name, err)
		}
		if !strings.Contains(name, "\x00") {
			_, err := b.Store.List(ctx, 0, store.Filter{Prefix: name}, store.Cursor{}, 1)
			requireRefused("a prefix", name, err)
		}
		// What has such a name can be read and removed: here nothing has.
		_, err = b.Store.Get(ctx, 0, name)
		b.requireError(err, store.ErrNotFound)
		for _, op := range []store.Op{store.Cancel, store.Purge, store.PauseTask, store.ResumeTask} {
			outcomes, err := b.Store.Change(ctx, 0, b.stamp(), store.Command{Op: op, Items: []store.Item{{ID: name}}})
			b.require(errors.Is(err, store.ErrInvalid) || err == nil && outcomes[0] == store.Absent, "op %v of %.40q: %v, %v", op, name, outcomes, err)
		}
		for _, f := range []store.Filter{{Handler: name}, {Group: name}, {Error: name}} {
			page, err := b.Store.List(ctx, 0, f, store.Cursor{}, 1)
			b.require(errors.Is(err, store.ErrInvalid) || err == nil && len(page.Entries) == 0, "list of %.40q: %v, %v", name, page.Entries, err)
		}
		equal(b, fmt.Sprintf("entries after %.40q", name), b.allEntries(), before)
	}
	// The entries that a store makes for itself cannot be named.
	for _, id := range []string{store.HeadID("unique"), store.RunID("unique", 0), "k\x00x", "k\x00-1", "k\x00\x00", "k\x001 "} {
		for _, op := range []store.Op{store.Cancel, store.Purge, store.Reschedule, store.Requeue} {
			if op == store.Purge && id == store.RunID("unique", 0) {
				continue
			}
			x := store.Item{ID: id}
			if op == store.Reschedule || op == store.Requeue {
				x.When = b.after(0)
			}
			_, err := b.Store.Change(ctx, 0, b.stamp(), store.Command{Op: op, Items: []store.Item{x}})
			requireRefused(fmt.Sprint("op ", op), id, err)
		}
	}
	equal(b, "entries after refused commands", b.allEntries(), before)
	equal(b, "the key is still unique", b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{unique}})[0], store.Kept)
	// Only the names must be text.
	for i, text := range append(oddNames, "") {
		id := fmt.Sprint("ordinary", i)
		b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: id, When: b.after(0), Task: store.Task{ID: id, Handler: "h", Record: []byte(text)}}}})
		x := b.claimOne(id)
		equal(b, "record", string(x.Record), text)
		r := b.emptyRound()
		r.Reports = []store.Report{{Lease: leaseOf(x), End: store.Failed, Due: x.Due, Text: text}}
		equal(b, "receipt", b.sendRound(r).Receipts[0], store.Accepted)
		e := b.getEntry(id)
		b.require(len(e.Failures) == 1 && utf8.ValidString(e.Failures[0].Text) && len(e.Failures[0].Text) <= store.MaxText, "the failures are %q", e.Failures)
		equal(b, "purge", b.changeTask(store.Purge, id, store.When{}), store.Removed)
	}
	b.require(b.report(running, store.Done, store.When{}), "the report on the running task was refused")
}

// A FaultyClock is a clock that panics when a test demands it.
type FaultyClock struct {
	*timertest.Clock
	faulty atomic.Bool
}

// Now returns the time, or panics.
func (c *FaultyClock) Now() time.Time {
	if c.faulty.Load() {
		panic("storetest: a panic of the clock")
	}
	return c.Clock.Now()
}

// After a panic inside the store nothing has changed, and the next commands work.
func testPanic(b *storeTest) {
	if b.Clock == nil {
		b.Skip("the store reads the clock of a server")
	}
	b.prepareTasks()
	before := b.allEntries()
	for range 3 {
		b.Clock.faulty.Store(true)
		_, err := b.Store.Change(ctx, 0, b.stamp(), store.Command{Op: store.Schedule, Items: []store.Item{item("panic", store.After(0))}})
		b.requireError(err, store.ErrNotDone)
		_, err = b.Store.Do(ctx, 0, b.stamp(), b.claimRound(10))
		b.requireError(err, store.ErrNotDone)
		b.Clock.faulty.Store(false)
		equal(b, "entries after a panic", b.allEntries(), before)
	}
	b.schedule("after", b.after(0))
	ids := make(map[string]bool)
	for _, x := range b.claim(100) {
		ids[x.ID] = true
	}
	b.require(ids["after"] && !ids["panic"], "claimed %v", ids)
}
