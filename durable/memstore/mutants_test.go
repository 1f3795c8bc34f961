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

// A test that cannot fail proves nothing. Each of the mutants is a change of memstore
// that breaks a promise, and the test of storetest that finds it.
var mutants = []struct{ promise, file, old, new, test string }{
	{"never early", "shard.go", "sh.waiting.Add(int64(at), t)", "sh.waiting.Add(int64(at-1), t)", "NeverEarly"},
	{"oldest first", "queue.go", "cmp.Compare(t.At, u.At)", "cmp.Compare(u.At, t.At)", "OldestFirst"},
	{"told when there is more", "claim.go", "at = a.Now\n", "\n", "DowntimeCatchesUp"},
	{"tokens grow", "claim.go", "sh.fence = max(sh.fence, int64(now))", "sh.fence = int64(now)", "TokensGrow"},
	{"a report needs the token", "round.go", "|| t.Token != h.Token {", "{", "ZombiesAreRefused"},
	{"a lease that is extended lasts", "round.go", "sh.run(t, until)\n\tif", "sh.run(t, t.At)\n\tif", "LeaseAndToken"},
	{"poison dies", "round.go", "if t.Crashes >= most &&", "if t.Crashes > most &&", "Poison"},
	{"but not a task that repeats", "round.go", " && !t.Repeats()", "", "PoisonRepeats"},
	{"what follows is what was scheduled", "round.go", "t.Task = *t.NextTask", "", "FollowingAndStopping"},
	{"cancel ends what follows", "change.go", "t.Stopping, t.Following, t.Next, t.NextTask = true, false, 0, nil", "t.Stopping = true", "FollowingAndStopping"},
	{"who is overtaken is told", "finish.go", "return store.Overtaken", "return store.Accepted", "FollowingAndStopping"},
	{"a command once", "sender.go", "x != nil && s.Number == x.number", "false", "OnceHoweverOftenItIsSent"},
	{"what was overtaken is refused", "sender.go", "x != nil && s.Number < x.number", "false", "OnceHoweverOftenItIsSent"},
	{"a command is remembered for a day", "sender.go", "24 * time.Hour", "time.Hour", "OnceForADay"},
	{"not after its deadline", "sender.go", "s.Until != 0 && now > s.Until", "false", "Deadlines"},
	{"a claim that is repeated gets its tasks", "round.go", "a.Tasks = append(a.Tasks, t.claimed())", "_ = t", "OnceRounds"},
	{"and their leases begin again", "round.go", "sh.extend(h, now.Add(r.Lease))\n\t\t\ta.Tasks", "a.Tasks", "OnceRounds"},
	{"but not those that are over", "round.go", "t != nil && t.At > now", "t != nil", "OnceRounds"},
	{"only what the worker can run", "claim.go", "(k.schedule == \"\" || slices.Contains(c.Schedules, k.schedule))", "true", "UnknownHandlers"},
	{"an attempt handed back does not count", "finish.go", "t.Attempts-- // it does not count", "", "Reports"},
	{"nor one that was not begun", "finish.go", "if r.End == store.Dropped {", "if false {", "Reports"},
	{"runs that die are counted", "finish.go", "runs += there.Runs", "", "Repeating"},
	{"when the run was due", "finish.go", "t.Due = r.Due", "", "Model"},
	{"a single run does not repeat", "change.go", "single.Schedule = \"\"", "", "Model"},
	{"what was tried elsewhere counts", "change.go", "e.Due, e.Attempts, e.Crashes", "e.Due, 0, e.Crashes", "Import"},
	{"the earlier stays", "change.go", "at >= there", "at > there", "ScheduleModes"},
	{"a requeued run is cancelled by itself", "change.go", "return sh.cancel(t)", "return sh.cancel(sh.tasks[store.KeyOf(x.ID)])", "RequeuedRuns"},
	{"what is asked for again is another run", "change.go", "t.Renew(x.Generation)\n\tsh.fresh(t, at)", "sh.fresh(t, at)", "Generations"},
	{"paused is paused", "claim.go", "if sh.paused {\n\t\treturn nil", "if false {\n\t\treturn nil", "PauseAndResume"},
	{"bytes are the caller's", "change.go", "t.Record = bytes.Clone(t.Record)", "bytes.Clone(t.Record)", "NothingIsShared"},
	{"a list misses nothing", "list.go", "p.Next = found[i-1].spot().cursor()", "p.Next = found[i].spot().cursor()", "List"},
	{"the forecast counts what is before", "list.go", "slices.BinarySearch(moments, at+1)", "slices.BinarySearch(moments, at)", "StatsAndForecast"},
	{"the context ends the call", "memstore.go", "return store.Ended(ctx)", "return nil", "ContextEndsTheCall"},
	{"who sleeps is woken", "shard.go", "if at < sh.told {", "if false {", "Wait"},
	{"whatever is left for others", "claim.go", "sh.told = max(sh.told, at)", "if sh.told = at; left {\n\t\t\tsh.told = a.Now\n\t\t}", "WhoSleepsIsInTime"},
	{"what follows is imported", "change.go", "t.Task = own(*e.NextTask)", "", "Import"},
	{"what follows is listed", "list.go", "next := own(*e.NextTask)", "next := own(e.Task)", "FollowingAndStopping"},
	{"tokens grow over a restart", "reopen_test.go", "sh.fence = old.fence", "", "Reopened"},
	{"a pause lasts over a restart", "reopen_test.go", "sh.paused = old.paused", "", "Reopened"},
	{"numbers last over a restart", "reopen_test.go", "sh.n = old.n", "", "Reopened"},
	{"a command is once over a restart", "reopen_test.go", "sh.senders[name] = x", "_, _ = name, x", "Reopened"},
	{"what was tried lasts over a restart", "reopen_test.go", "switch t.Entry = x.entry(); t.State {", "t.Entry = x.entry()\n\t\t\tt.Failures = nil\n\t\t\tswitch t.State {", "Reopened"},
	{"leases last over a restart", "reopen_test.go", "sh.run(t, t.At)", "sh.wait(t, t.At)", "Reopened"},
	{"a closed store is closed", "memstore.go", "if s.closed.Load() {\n\t\treturn store.ErrClosed", "if false {\n\t\treturn store.ErrClosed", "Reopened"},
}

// TestMutants sees that each mutant can be applied, and that the first is found;
// TICKLESS_STRESS has it try all of them, which takes a minute or two.
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
			mutant := filepath.Join(dir, m.file)
			require.NoError(t, os.WriteFile(mutant, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600))
			path, err := filepath.Abs(m.file)
			require.NoError(t, err)
			overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutant}})
			require.NoError(t, err)
			list := filepath.Join(dir, "overlay.json")
			require.NoError(t, os.WriteFile(list, overlay, 0o600))
			out, err := exec.Command("go", "test", "-count=1", "-overlay", list, "-run", "^TestStore(_Reopened)?$/^"+m.test+"$", ".").CombinedOutput()
			require.Error(t, err, "nobody has noticed")
			require.Regexp(t, "--- FAIL: TestStore(_Reopened)?/"+m.test, string(out))
		})
	}
}
