package storetest

import (
	"encoding/gob"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// RunUpgraded tests a store whose data an older version of its package wrote, or the first
// program with this version. The file at path has a gob of [Stored], made by that program. The
// store must contain the same, and work.
func RunUpgraded(t *testing.T, st store.Store, path string) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want Stored
	if err := gob.NewDecoder(f).Decode(&want); err != nil {
		t.Fatal(err)
	}
	b := &storeTest{T: t, Subject: Subject{Store: st}}
	got := b.allEntries()
	equal(b, "the number of entries", len(got), len(want.Entries))
	for i := range want.Entries {
		if next := want.Entries[i].NextTask; next != nil {
			next.ID = want.Entries[i].ID // the older version has returned an odd id differently
		}
		version := want.Entries[i].Version
		if version == 0 && want.Entries[i].State != store.Past {
			version = 1 // the older version had none
		}
		want.Entries[i].Version = 0
		if got[i].State == store.Running {
			want.Entries[i].At = got[i].At // a lease may have begun again
		}
		equal(b, "an entry", got[i], want.Entries[i])
		equal(b, "an entry by its id", b.getEntry(want.Entries[i].ID), want.Entries[i])
		equal(b, "a version", b.version(want.Entries[i].ID), version)
	}
	stats := b.stats()
	want.Stats.Late, want.Stats.Overdue, want.Stats.Unknown = stats.Late, stats.Overdue, stats.Unknown
	equal(b, "the numbers", stats, want.Stats)
	outcomes, err := st.Change(ctx, 0, want.Last, store.Command{Op: store.Cancel, Items: []store.Item{{ID: want.Cancelled[0]}, {ID: want.Cancelled[1]}}})
	b.requireNoError(err)
	equal(b, "the outcomes of the last command, once more", outcomes, want.Outcomes)

	// Everything due runs, and everything else can be removed.
	b.sendCommand(store.Command{Op: store.Resume})
	runnable := make(map[string]bool)
	b.unit = time.Hour
	round := b.claimRound(store.MaxClaim)
	round.Claim.Handlers = nil
	for _, e := range got {
		if e.State == store.Pending && e.At <= b.now() && store.IsName(e.Handler) && !e.HandlerPaused {
			runnable[e.ID] = true
			if !slices.Contains(round.Claim.Handlers, e.Handler) {
				round.Claim.Handlers = append(round.Claim.Handlers, e.Handler)
			}
		}
	}
	for id := range want.Stats.Limits {
		b.sendCommand(store.Command{Op: store.SetLimit, Items: []store.Item{{ID: id, Limit: &store.Limit{}}}})
	}
	for n := -1; n != len(runnable); {
		n = len(runnable)
		for _, x := range b.sendRound(round).Tasks {
			b.require(runnable[x.ID], "claimed %q twice, or though it was not due", x.ID)
			delete(runnable, x.ID)
			b.require(b.report(x, store.Done, store.When{}), "the report on %q was refused", x.ID)
		}
	}
	equal(b, "tasks that are due and cannot be claimed", runnable, map[string]bool{})
	b.removeAll()
	equal(b, "entries at the end", int64(len(b.allEntries())), want.Stats.Past)
}

// Stored is what a store contains. Gob ignores fields that it had in an older version.
type Stored struct {
	Entries []store.Entry
	Stats   store.Stats
	// Last is the latest command of a sender: it cancelled tasks, with these outcomes.
	Last      store.Stamp
	Cancelled []string
	Outcomes  []store.Outcome
}
