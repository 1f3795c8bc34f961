package memstore_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutants are changes to package machine or memstore. Each breaks a promise, so that
// the named test of storetest must fail.
var mutants = []struct{ promise, file, old, new, test string }{
	{"never early", "shard.go", "case h.Key().at > now:", "case false:", "NeverEarly"},
	{"oldest first", "queue.go", "cmp.Compare(a.at, b.at)", "cmp.Compare(b.at, a.at)", "DowntimeCatchesUp"},
	{"a worker is told if more tasks are due", "../store/machine/round.go", "\t\tnextAt = m.now\n", "", "DowntimeCatchesUp"},
	{"tokens grow", "../store/machine/change.go", "m.numbers.Fence = max(m.numbers.Fence, int64(m.now)) + 1", "m.numbers.Fence = int64(m.now) + 1", "Model"},
	{"a report needs the token", "../store/machine/round.go", "&& t.Token == h.Token {", "{", "ZombiesAreRefused"},
	{"a lease that is extended lasts", "../store/machine/round.go", "m.startLease(t, r)\n\tif", "if", "LeaseAndToken"},
	{"a claim keeps to its rooms", "../store/machine/pick.go", "case r.taken >= r.most ||", "case", "Rooms"},
	{"spare places are for others", "../store/machine/pick.go", "p.ordinary <= 0 && r.busy", "false", "Spare"},
	{"suspects are left", "../store/machine/pick.go", "|| t.Suspect && !p.takeSuspect(t)", "", "Suspects"},
	{"a last suspect is the only one", "../store/machine/pick.go", "!isLast || p.onlySuspect", "true", "LastSuspects"},
	{"the third crash makes a suspect", "../store/suspect.go", "maxInnocentCrashes+1, maxCrashes-1", "maxInnocentCrashes+2, maxCrashes-1", "Poison"},
	{"poison dies", "../store/machine/round.go", "t.Crashes >= maxCrashes && !t.Repeats()", "t.Crashes > maxCrashes && !t.Repeats()", "Poison"},
	{"a repeating task does not die", "../store/machine/round.go", " && !t.Repeats()", "", "PoisonRepeats"},
	{"the task that follows is the scheduled one", "../store/machine/round.go", "t.Task = *t.NextTask", "", "FollowingAndStopping"},
	{"a cancel ends the task that follows", "../store/machine/change.go", "t.Stopping, t.Following, t.Next, t.NextTask, t.Paused = true, false, 0, nil, false", "t.Stopping = true", "FollowingAndStopping"},
	{"an overtaken worker is told", "../store/machine/round.go", "if m.applyChange(t) {\n\t\treturn store.Overtaken", "if m.applyChange(t) {\n\t\treturn store.Accepted", "FollowingAndStopping"},
	{"a command once", "../store/machine/change.go", "lastCommand != nil && s.Number == lastCommand.Number", "false", "OnceHoweverOftenItIsSent"},
	{"an earlier command is refused", "../store/machine/change.go", "lastCommand != nil && s.Number < lastCommand.Number", "false", "OnceHoweverOftenItIsSent"},
	{"a command is remembered for a day", "../store/machine/change.go", "24 * time.Hour", "time.Hour", "OnceForADay"},
	{"a command is refused after its deadline", "../store/machine/change.go", "s.Until != 0 && m.now > s.Until", "false", "Model"},
	{"a claim that is repeated gets its tasks", "../store/machine/round.go", "m.startLease(t, r)\n\t\t\t\ta.Tasks = append(a.Tasks, t.toClaimed())", "m.startLease(t, r)", "OnceHoweverOftenItIsSent"},
	{"a repeated claim starts its leases again", "../store/machine/round.go", "m.startLease(t, r)\n\t\t\t\ta.Tasks", "a.Tasks", "OnceHoweverOftenItIsSent"},
	{"a repeated claim omits expired leases", "../store/machine/round.go", " && t.At > m.now", "", "OnceHoweverOftenItIsSent"},
	{"only what the worker can run", "../store/machine/index.go", "(schedule == \"\" || slices.Contains(c.Schedules, schedule))", "true", "UnknownHandlers"},
	{"an attempt handed back does not count", "../store/machine/round.go", "t.Attempts-- // it does not count", "", "Reports"},
	{"a dropped run is no attempt", "../store/machine/round.go", "if r.End == store.Dropped {", "if false {", "Reports"},
	{"runs that die are counted", "../store/machine/round.go", "runs += old.Runs", "", "Repeating"},
	{"when the run was due", "../store/machine/round.go", "t.Due = r.Due", "", "Model"},
	{"a single run does not repeat", "../store/machine/change.go", "requeuedRun.Schedule, requeuedRun.ID = \"\",", "requeuedRun.ID =", "Model"},
	{"an import keeps the attempts", "../store/machine/change.go", "x.Due, x.Attempts, x.Crashes", "x.Due, 0, x.Crashes", "Import"},
	{"KeepEarlier keeps the earlier task", "../store/machine/change.go", "at >= oldAt", "at > oldAt", "ScheduleModes"},
	{"a requeued run is cancelled by itself", "../store/machine/change.go", "return m.cancel(t)", "return m.cancel(m.index.Find(store.KeyOf(x.ID)))", "RequeuedRuns"},
	{"a requested run has a new generation", "../store/machine/change.go", "t.Renew(x.Generation)\n\tm.renewVersion(t)", "m.renewVersion(t)", "Generations"},
	{"a paused task waits", "shard.go", "if t.Waits() {", "if false {", "PausedTasks"},
	{"a paused task runs once", "../store/machine/round.go", "t.Once = false\n\t\tm.startLease", "m.startLease", "PausedTasks"},
	{"a paused handler waits", "../store/machine/limits.go", "if l := m.limitOf(h); l != nil && l.Paused != 0 {", "if false {", "PausedHandlers"},
	{"a version is compared", "../store/machine/change.go", "t != nil && t.Version != v", "false", "Versions"},
	{"a command renews the version", "../store/machine/change.go", "t.Version = m.nextNumber()", "t.Version = max(t.Version, 1)", "Versions"},
	{"paused is paused", "../store/machine/round.go", "if m.numbers.Paused {\n\t\treturn nil, p, Never", "if false {\n\t\treturn nil, p, Never", "PauseAndResume"},
	{"the store shares no memory with its caller", "../store/machine/index.go", "t.Record = bytes.Clone(t.Record)", "bytes.Clone(t.Record)", "NothingIsShared"},
	{"a list misses nothing", "list.go", "found = found[:limit]\n\t\t\tp.Next = f.CursorOf(&found[limit-1].Entry)", "p.Next = f.CursorOf(&found[limit].Entry)\n\t\t\tfound = found[:limit]", "List"},
	{"the context ends the call", "memstore.go", "return store.Ended(ctx)", "return nil", "ContextEndsTheCall"},
	{"a sleeping worker is woken", "../store/machine/round.go", "t.Waits() || t.At >= m.numbers.Told", "true", "Wait"},
	{"a worker is woken even if others have more tasks", "../store/machine/round.go", "m.numbers.Told = max(m.numbers.Told, nextAt)", "m.numbers.Told = nextAt", "WhoSleepsIsInTime"},
	{"a task that follows is imported", "../store/entry.go", "x.Task = *x.NextTask", "", "Import"},
	{"a task that follows is listed", "../store/machine/index.go", "nextTask := Copy(*e.NextTask)", "nextTask := Copy(e.Task)", "FollowingAndStopping"},
	{"a clock that was set ends no lease", "../store/machine/change.go", "clockStep > minClockStep || clockStep < -minClockStep", "false", "ClockIsSet"},
	{"a paused task stays paused", "../store/machine/change.go", "case t.At == store.Farthest: // it stays paused", "case false:", "Model"},
	{"a resumed task begins again", "../store/machine/change.go", "t.At == store.Farthest && t.Repeats()", "false", "Model"},
	{"KeepSame keeps the same task", "../store/machine/change.go", "keep == store.KeepSame && t.isSameAsNext(&x.Task)", "false", "Model"},
	{"a key that was done is unique", "../store/machine/kept.go", "headEntry != nil && headEntry.Due > m.now", "headEntry != nil && false", "Model"},
	{"the latest runs are kept", "../store/machine/kept.go", "runs %= k.Most", "", "Model"},
	{"expired entries are deleted", "../store/machine/kept.go", "m.numbers.Past == 0", "true", "Model"},
	{"an expired run is not purged", "../store/machine/change.go", " || t.HasExpired(m.now)", "", "Expiry"},
	{"numbers, pause and tokens survive a restart", "reopen_test.go", "sh.numbers = old.numbers", "", "Reopened"},
	{"a command is carried out once despite a restart", "reopen_test.go", "sh.senders[name] = x", "_, _ = name, x", "Reopened"},
	{"attempts survive a restart", "reopen_test.go", "sh.Changed(t)", "t.Failures = nil\n\t\t\tsh.Changed(t)", "Reopened"},
	{"leases survive a restart", "reopen_test.go", "sh.Changed(t)", "t.State = min(t.State, 1)\n\t\t\tsh.Changed(t)", "Reopened"},
	{"a limit limits the running tasks", "../store/machine/pick.go", "r.most, r.limit = int(n), l", "", "LimitOfConcurrency"},
	{"a permit comes back with its lease", "../store/machine/round.go", "m.numbers.Crashed++\n\t\tm.returnPermit(t)", "m.numbers.Crashed++", "LimitOfConcurrency"},
	{"a new limit counts running tasks", "../store/machine/limits.go", "if t.Handler == handler {", "if t.Handler == \"\" {", "LimitWhileRunning"},
	{"a rate limits the claims", "../store/machine/limits.go", "l.fullAt(m.now) + interval\n", "l.fullAt(m.now) + interval/2\n", "LimitOfRate"},
	{"a worker is told when the next may begin", "../store/machine/pick.go", "p.permitAt = min(p.permitAt, permitAt)", "", "LimitOfRate"},
	{"a permit that others wait for wakes them", "../store/machine/pick.go", "p.limited, r.limit.Kept = true, true", "p.limited = true", "LimitWakes"},
	{"a permit that comes back wakes others", "../store/machine/limits.go", "l.Kept = false\n\t\t\tm.numbers.Wakes++", "l.Kept = false", "LimitWakes"},
	{"a limit limits the running tasks of a group", "../store/machine/groups.go", "g.Running++", "", "GroupConcurrency"},
	{"a permit of a group comes back", "../store/machine/groups.go", "g.Running--", "", "GroupConcurrency"},
	{"a worker is told when a group's next may begin", "../store/machine/groups.go", "until = full - interval*store.Time(burst-permits-1)", "", "GroupRate"},
	{"a permit of a group wakes workers", "../store/machine/groups.go", "m.wakeIfEarlier(t)", "_ = t", "GroupWakes"},
	{"a new limit counts running tasks of a group", "../store/machine/groups.go", "running[t.groupKey()]++", "", "GroupLimitWhileRunning"},
	{"a closed store is closed", "memstore.go", "if s.waiters.Closed() {\n\t\treturn store.ErrClosed", "if false {\n\t\treturn store.ErrClosed", "Reopened"},
}

// TestMutants checks that each mutant can be applied, and that storetest fails with the
// first mutant. With TICKLESS_STRESS, it runs storetest with every mutant.
func TestMutants(t *testing.T) {
	for i, m := range mutants {
		t.Run(strings.ReplaceAll(m.promise, " ", "_"), func(t *testing.T) {
			source, err := os.ReadFile(m.file)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(source), m.old), "%q in %s", m.old, m.file)
			if testing.Short() || i > 0 && os.Getenv("TICKLESS_STRESS") == "" {
				return
			}
			dir := t.TempDir()
			mutant := filepath.Join(dir, filepath.Base(m.file))
			require.NoError(t, os.WriteFile(mutant, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600))
			path, err := filepath.Abs(m.file)
			require.NoError(t, err)
			overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutant}})
			require.NoError(t, err)
			list := filepath.Join(dir, "overlay.json")
			require.NoError(t, os.WriteFile(list, overlay, 0o600))
			out, err := exec.Command("go", "test", "-count=1", "-overlay", list, "-run", "^TestStore(_Reopened)?$/^"+m.test+"$", ".").CombinedOutput()
			require.Error(t, err, "storetest passes with the mutant")
			require.Regexp(t, "--- FAIL: TestStore(_Reopened)?/"+m.test, string(out))
		})
	}
}
