package storetest

import (
	"fmt"
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// Each command that changes a task gives it a new version, which its key has never had. With
// IfVersion a command changes only the task that its client has seen.
func testVersions(b *storeTest) {
	seen := make(map[int64]bool)
	var latest int64
	changed := func(what, id string) int64 {
		b.Helper()
		v := b.version(id)
		b.require(v > latest && !seen[v], "after %s the version is %d, and it was %d", what, v, latest)
		seen[v], latest = true, v
		return v
	}
	unchanged := func(what, id string, want int64) {
		b.Helper()
		equal(b, "the version after "+what, b.version(id), want)
	}
	send := func(what string, op store.Op, x store.Item, keep store.Keep, want store.Outcome) {
		b.Helper()
		equal(b, what, b.sendCommand(store.Command{Op: op, Keep: keep, Items: []store.Item{x}})[0], want)
	}
	due, far := store.At(b.now()-10), b.after(1000)
	b.schedule("k", far)
	first := changed("Schedule", "k")
	for _, e := range b.listWithVersions(store.Filter{}, 10) {
		equal(b, "the version in a list", e.Version, first)
	}
	send("the same", store.Schedule, item("k", far), store.KeepSame, store.Kept)
	send("another", store.Schedule, item("k", far), store.KeepAny, store.Kept)
	send("resume", store.ResumeTask, store.Item{ID: "k"}, 0, store.Kept)
	unchanged("commands that changed nothing", "k", first)
	send("replace", store.Schedule, item("k", far), 0, store.Replaced)
	changed("another Schedule", "k")
	send("pause", store.PauseTask, store.Item{ID: "k"}, 0, store.Moved)
	changed("PauseTask", "k")
	send("run once", store.Reschedule, store.Item{ID: "k", When: far}, 0, store.Once)
	changed("Reschedule of a paused task", "k")
	send("resume", store.ResumeTask, store.Item{ID: "k"}, 0, store.Moved)
	changed("ResumeTask", "k")
	send("reschedule", store.Reschedule, store.Item{ID: "k", When: due}, 0, store.Moved)
	v := changed("Reschedule", "k")

	// Attempts change nothing, commands for a running task do. What follows keeps its version.
	x := b.claimOne("k")
	unchanged("a claim", "k", v)
	b.require(b.report(x, store.Retry, store.At(b.now())), "the report was refused")
	unchanged("a retry", "k", v)
	x = b.claimOne("k")
	equal(b, "extend", b.extend(x), store.Held)
	b.require(b.report(x, store.HandBack, store.When{}), "the report was refused")
	b.claimOne("k")
	b.sleep(leaseUnits + 1)
	x = b.claimOne("k")
	unchanged("a crash", "k", v)
	another := item("k", due)
	another.Task.Record = []byte("another")
	send("schedule", store.Schedule, another, 0, store.Following)
	changed("Schedule while it runs", "k")
	send("reschedule", store.Reschedule, store.Item{ID: "k", When: due, Generation: "123456"}, 0, store.Following)
	changed("Reschedule while it runs", "k")
	send("pause", store.PauseTask, store.Item{ID: "k"}, 0, store.Following)
	changed("PauseTask while it runs", "k")
	send("resume", store.ResumeTask, store.Item{ID: "k"}, 0, store.Following)
	v = changed("ResumeTask while it runs", "k")
	b.require(b.report(x, store.Done, store.When{}), "the report was refused")
	unchanged("the attempt", "k", v)
	x = b.claimOne("k")
	equal(b, "the record", string(x.Record), "a123456")
	send("cancel", store.Cancel, store.Item{ID: "k"}, 0, store.Stopping)
	changed("Cancel", "k")
	send("schedule", store.Schedule, item("k", due), 0, store.Following)
	v = changed("Schedule after Cancel", "k")
	b.require(b.report(x, store.Failed, store.When{}), "the report was refused")
	x = b.claimOne("k")
	unchanged("the attempt", "k", v)
	b.require(b.report(x, store.Failed, store.When{}), "the report was refused")
	unchanged("death", "k", v)
	send("requeue", store.Requeue, store.Item{ID: "k", When: due}, 0, store.Moved)
	changed("Requeue", "k")
	if b.Reopen != nil {
		b.reopen()
	}
	v = latest
	unchanged("reopening", "k", v)

	// A repeating task keeps its version from run to run, and its dead letter has it too.
	repeating := store.Item{ID: "r", When: due, Task: periodicTask("r", 1, 1)}
	send("repeating", store.Schedule, repeating, 0, store.Created)
	r := changed("Schedule of a repeating task", "r")
	claim := func() store.Claimed {
		b.Helper()
		for _, x := range b.claim(10) {
			if x.ID == "r" {
				return x
			}
			b.require(b.report(x, store.HandBack, far), "the report was refused")
		}
		b.Fatalf("the repeating task was not claimed")
		return store.Claimed{}
	}
	b.require(b.report(claim(), store.Done, store.At(b.now())), "the report was refused")
	unchanged("a run", "r", r)
	x = claim()
	repeating.Task = periodicTask("r", 1, 2)
	send("new content", store.Schedule, repeating, 0, store.Following)
	r = changed("new content while it runs", "r")
	b.require(b.report(x, store.Failed, store.At(b.now())), "the report was refused")
	unchanged("a run that failed", "r", r)
	unchanged("a run that failed", store.DeadID("r"), r)
	send("requeue", store.Requeue, store.Item{ID: store.DeadID("r"), When: far}, 0, store.Moved)
	for _, e := range b.listWithVersions(store.Filter{Prefix: store.DeadID("r")}, 10) {
		changed("Requeue of a run", e.ID)
	}
	send("cancel", store.Cancel, store.Item{ID: "r"}, 0, store.Removed)

	// With IfVersion, a command on another version changes nothing.
	for _, op := range []store.Op{store.Schedule, store.Reschedule, store.Cancel, store.PauseTask, store.ResumeTask, store.Requeue, store.Purge} {
		id := fmt.Sprint("op", op)
		if op == store.Requeue || op == store.Purge {
			b.schedule(id, due)
			b.claimAs("other", 10, "none")
			for _, x := range b.claim(10) {
				if x.ID == id {
					b.require(b.report(x, store.Failed, store.When{}), "the report was refused")
				} else {
					b.require(b.report(x, store.HandBack, far), "the report was refused")
				}
			}
		} else {
			b.schedule(id, far)
		}
		x := store.Item{ID: id}
		if op == store.Schedule {
			x = item(id, far)
		}
		if op == store.Schedule || op == store.Reschedule || op == store.Requeue {
			x.When = far
		}
		v := b.version(id)
		before := b.getEntry(id)
		for _, other := range []int64{1, v - 1, v + 1} {
			x.IfVersion = other
			send("another version", op, x, 0, store.Changed)
		}
		equal(b, "the task after "+id, b.getEntry(id), before)
		unchanged("commands for another version", id, v)
		x.IfVersion = v
		outcome := b.sendCommand(store.Command{Op: op, Items: []store.Item{x, x}})
		b.require(outcome[0] != store.Changed && (outcome[1] == store.Changed || outcome[0] == store.Removed && outcome[1] == store.Absent || outcome[0] == store.Kept),
			"outcomes of %s, twice with its version: %v", id, outcome)
		if op == store.Schedule {
			x.ID, x.Task.ID = "none", "none"
			send("no task", op, x, 0, store.Changed)
			b.requireAbsent("none")
		} else {
			x.ID = "none"
			send("no task", op, x, 0, store.Absent)
		}
	}
	// Old versions of a key stay old.
	send("cancel", store.Cancel, store.Item{ID: "k"}, 0, store.Removed)
	b.schedule("k", far)
	latest = slices.Max([]int64{latest, v})
	changed("Schedule of a key that was removed", "k")
	send("the version before it was removed", store.Cancel, store.Item{ID: "k", IfVersion: v}, 0, store.Changed)
	for _, c := range []store.Command{
		{Op: store.Cancel, Items: []store.Item{{ID: "k", IfVersion: -1}}},
		{Op: store.Import, Items: []store.Item{{ID: "new", IfVersion: 1, Entry: &store.Entry{Task: task("new"), State: store.Pending}}}},
	} {
		_, err := b.Store.Change(ctx, 0, b.stamp(), c)
		b.requireError(err, store.ErrInvalid)
	}
}

// touch notes that a command has changed a task of the model, so that it has a new version.
func (m *model) touch(t *modelTask) {
	t.newVersion, t.versionBefore = true, m.latestVersion
}

// adoptVersion takes a new version over from an entry of the store.
func (m *model) adoptVersion(e *store.Entry) {
	if t := m.tasks[e.ID]; t != nil && t.newVersion {
		m.check(e.Version > t.versionBefore, "the version %d came after %d: %+v", e.Version, t.versionBefore, *e)
		t.Version, t.newVersion = e.Version, false
		m.latestVersion = max(m.latestVersion, e.Version)
	}
}

// hasVersion reports whether a command with IfVersion applies to a task.
func (t *modelTask) hasVersion(v int64) bool { return !t.newVersion && t.Version == v }
