package redisstore

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

// A logged is a command in an AOF. It begins at the offset from, and ends before the
// offset to.
type logged struct {
	from, to int
	name     string
}

// readAOF returns the commands in an AOF from an offset on.
func readAOF(t *testing.T, b []byte, from int) []logged {
	t.Helper()
	var out []logged
	r := bufio.NewReader(bytes.NewReader(b[from:]))
	line := func() (string, int) {
		s, err := r.ReadString('\n')
		require.NoError(t, err)
		return strings.TrimSpace(s), len(s)
	}
	for at := from; at < len(b); {
		c := logged{from: at}
		s, size := line()
		at += size
		if s[0] == '#' {
			continue
		}
		n, err := strconv.Atoi(s[1:])
		require.NoError(t, err)
		for i := range n {
			s, size := line()
			length, err := strconv.Atoi(s[1:])
			require.NoError(t, err)
			text := make([]byte, length+2)
			_, err = io.ReadFull(r, text)
			require.NoError(t, err)
			if i == 0 {
				c.name = strings.ToUpper(string(text[:length]))
			}
			at += size + len(text)
		}
		c.to = at
		out = append(out, c)
	}
	return out
}

// aofFile returns the path of the AOF to which the server of this folder appends.
func aofFile(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	if len(files) == 0 {
		return filepath.Join(dir, "appendonly.aof") // before Redis 7
	}
	return files[0]
}

// withoutIDs returns a copy of the dump without the tasks with these ids.
func withoutIDs(dump map[string]string, ids map[string]bool) map[string]string {
	out := maps.Clone(dump)
	maps.DeleteFunc(out, func(k, _ string) bool {
		_, id, _ := strings.Cut(k, " ")
		return ids[store.KeyOf(id)]
	})
	return out
}

// TestAOF_CutInsideEveryCommand truncates the AOF inside each command of a script, as a
// crash may do. The server's first start skips the incomplete script, but its second start
// executes the script's first commands. Repair must then correct the script's tasks.
func TestAOF_CutInsideEveryCommand(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	tomorrow := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	past := func(i int) durable.When { return durable.At(time.Unix(1_700_000_000+int64(i), 0)) }
	put := func(t *testing.T, c *client, key string, w durable.When) {
		_, err := c.Schedule(ctx, durable.Task{Key: key, Handler: "h", Body: []byte("body of " + key)}, w)
		require.NoError(t, err)
	}
	// claimFirst claims the first due task and returns its token.
	claimFirst := func(t *testing.T, c *client, lease time.Duration) int64 {
		w := &crasher{t: t, c: c, n: 1, lease: lease}
		for _, token := range w.claim() {
			return token
		}
		t.Fatal("no task was claimed")
		return 0
	}
	report := func(end store.End, next store.When) func(t *testing.T, c *client) func() {
		return func(t *testing.T, c *client) func() {
			token := claimFirst(t, c, time.Hour)
			return func() { (&crasher{t: t, c: c}).report(end, "d0", token, next) }
		}
	}
	none := func(do func(c *client) error) func(t *testing.T, c *client) func() {
		return func(t *testing.T, c *client) func() {
			return func() { require.NoError(t, do(c)) }
		}
	}
	due, none0 := store.At(store.TimeOf(tomorrow)), store.When{}
	for _, x := range []struct {
		name string
		// prepare sets up the tasks, and returns the command whose writes are cut off.
		prepare func(t *testing.T, c *client) func()
		ids     []string // the tasks that the command changes
		kept    bool     // whether these tasks must exist afterwards
		later   bool     // whether they must be due tomorrow or later
	}{
		{"schedule", none(func(c *client) error {
			_, err := c.Schedule(ctx, durable.Task{Key: "new", Handler: "h"}, durable.At(tomorrow))
			return err
		}), []string{"new"}, false, true},
		{"schedule replaces", none(func(c *client) error {
			_, err := c.Schedule(ctx, durable.Task{Key: "p0", Handler: "h2"}, durable.At(tomorrow.Add(time.Hour)))
			return err
		}), []string{"p0"}, true, true},
		{"schedule batch", none(func(c *client) error {
			_, err := c.ScheduleBatch(ctx, []durable.Item{{Task: durable.Task{Key: "a", Handler: "h"}, When: durable.At(tomorrow)},
				{Task: durable.Task{Key: "p0", Handler: "h2"}, When: durable.At(tomorrow)}, {Task: durable.Task{Key: "x0", Handler: "h"}, When: durable.At(tomorrow)}})
			return err
		}), []string{"a", "p0", "x0"}, false, true},
		{"schedule follows", func(t *testing.T, c *client) func() {
			claimFirst(t, c, time.Hour)
			return func() { put(t, c, "d0", durable.At(tomorrow)) }
		}, []string{"d0"}, true, false},
		{"cancel", none(func(c *client) error {
			_, err := c.CancelBatch(ctx, []string{"p0", "p1"})
			return err
		}), []string{"p0", "p1"}, false, true},
		{"cancel of what runs", func(t *testing.T, c *client) func() {
			claimFirst(t, c, time.Hour)
			return func() { _, err := c.Cancel(ctx, "d0"); require.NoError(t, err) }
		}, []string{"d0"}, true, false},
		{"reschedule", none(func(c *client) error {
			_, err := c.Reschedule(ctx, "p0", durable.At(tomorrow.Add(time.Hour)))
			return err
		}), []string{"p0"}, true, true},
		{"claim", func(t *testing.T, c *client) func() {
			return func() { (&crasher{t: t, c: c, n: 3}).claim() }
		}, []string{"d0", "d1", "d2"}, true, false},
		{"claim after a lease", func(t *testing.T, c *client) func() {
			claimFirst(t, c, time.Millisecond)
			time.Sleep(5 * time.Millisecond)
			return func() { (&crasher{t: t, c: c, n: 3}).claim() }
		}, []string{"d0", "d1", "d2", "d3"}, true, false},
		{"done", report(store.Done, none0), []string{"d0"}, false, false},
		{"done, repeats", report(store.Done, due), []string{"d0"}, true, true},
		{"retry", report(store.Retry, due), []string{"d0"}, true, true},
		{"dead", report(store.Failed, none0), []string{"d0"}, true, false},
		{"dead, repeats", report(store.Failed, due), []string{"d0"}, true, true},
		{"handed back", report(store.HandBack, none0), []string{"d0"}, true, false},
		{"requeue", none(func(c *client) error {
			_, err := c.Requeue(ctx, "x0", durable.At(tomorrow))
			return err
		}), []string{"x0"}, true, true},
		{"purge", none(func(c *client) error {
			_, err := c.Purge(ctx, "x0")
			return err
		}), []string{"x0"}, false, false},
		{"pause", none(func(c *client) error { return c.Pause(ctx) }), nil, true, true},
		{"resume", func(t *testing.T, c *client) func() {
			require.NoError(t, c.Pause(ctx))
			return func() { require.NoError(t, c.Resume(ctx)) }
		}, nil, true, true},
		{"extend", func(t *testing.T, c *client) func() {
			token := claimFirst(t, c, time.Hour)
			return func() {
				(&crasher{t: t, c: c, lease: 2 * time.Hour}).do(store.Round{Extend: []store.Lease{{ID: "d0", Token: token}}})
			}
		}, []string{"d0"}, true, false},
		{"repair", func(t *testing.T, c *client) func() {
			r := c.s.client
			require.NoError(t, r.ZRem(ctx, c.key("p0", dueOf("h")), "p0").Err())
			require.NoError(t, r.ZAdd(ctx, c.key("p1", "lease"), redis.Z{Score: 1, Member: "p1"}).Err())
			require.NoError(t, r.HSet(ctx, c.key("p2", "follows"), "p2", r.HGet(ctx, c.key("p2", "task"), "p2").Val()).Err())
			return func() {
				_, err := c.s.runScript(ctx, c.s.scripts.repair, 0, "task", "", "0", 1000)
				require.NoError(t, err)
			}
		}, []string{"p0", "p1", "p2"}, true, true},
		{"schedule, and forgets senders", func(t *testing.T, c *client) func() {
			for i := range 150 {
				require.NoError(t, c.s.client.HSet(ctx, c.key("", "meta"), fmt.Sprint("s:gone.", i), "1 1700000000000000 o2").Err())
			}
			other := newClient(c.s.client, WithShards(1))
			_, err := other.Check(ctx)
			require.NoError(t, err)
			return func() { put(t, other, "new", durable.At(tomorrow)) }
		}, []string{"new"}, false, true},
		{"schedule batch with a key twice", none(func(c *client) error {
			_, err := c.ScheduleBatch(ctx, []durable.Item{{Task: durable.Task{Key: "a", Handler: "h"}, When: durable.At(tomorrow)},
				{Task: durable.Task{Key: "a", Handler: "h2"}, When: durable.At(tomorrow.Add(time.Hour))}, {Task: durable.Task{Key: "b", Handler: "h"}, When: durable.At(tomorrow)}})
			return err
		}), []string{"a", "b"}, false, true},
		{"schedule of a dead letter", none(func(c *client) error {
			_, err := c.Schedule(ctx, durable.Task{Key: "x0", Handler: "h2"}, durable.At(tomorrow))
			return err
		}), []string{"x0"}, true, true},
		{"reschedule of what runs", func(t *testing.T, c *client) func() {
			claimFirst(t, c, time.Hour)
			return func() { _, err := c.Reschedule(ctx, "d0", durable.At(tomorrow)); require.NoError(t, err) }
		}, []string{"d0"}, true, false},
		{"done, and what follows", func(t *testing.T, c *client) func() {
			token := claimFirst(t, c, time.Hour)
			put(t, c, "d0", durable.At(tomorrow))
			return func() { (&crasher{t: t, c: c}).report(store.Done, "d0", token, none0) }
		}, []string{"d0"}, true, true},
		{"done, and cancelled", func(t *testing.T, c *client) func() {
			token := claimFirst(t, c, time.Hour)
			_, err := c.Cancel(ctx, "d0")
			require.NoError(t, err)
			return func() { (&crasher{t: t, c: c}).report(store.Done, "d0", token, due) }
		}, []string{"d0"}, false, true},
		{"many reports", func(t *testing.T, c *client) func() {
			w := &crasher{t: t, c: c, n: 4}
			tokens := w.claim()
			return func() {
				var r store.Round
				for i, end := range []store.End{store.Done, store.Retry, store.Failed, store.Done} {
					id := fmt.Sprint("d", i)
					r.Reports = append(r.Reports, store.Report{Lease: store.Lease{ID: id, Token: tokens[id]}, End: end,
						Next: []store.When{none0, due, none0, due}[i], Due: 1, Text: "text"})
				}
				w.do(r)
			}
		}, []string{"d0", "d1", "d2", "d3"}, false, false},
		{"handed back for later", report(store.HandBack, due), []string{"d0"}, true, true},
		{"claim after the lease of what is poison", func(t *testing.T, c *client) func() {
			for range 2 {
				claimFirst(t, c, time.Millisecond)
				time.Sleep(5 * time.Millisecond)
			}
			claimFirst(t, c, time.Millisecond)
			time.Sleep(5 * time.Millisecond)
			return func() { (&crasher{t: t, c: c, n: 3}).claim() }
		}, []string{"d0", "d1", "d2", "d3", "d4", "d5"}, true, false},
		{"claim after the lease of what follows", func(t *testing.T, c *client) func() {
			claimFirst(t, c, 50*time.Millisecond)
			put(t, c, "d0", durable.At(tomorrow))
			time.Sleep(60 * time.Millisecond)
			return func() { (&crasher{t: t, c: c, n: 3}).claim() }
		}, []string{"d0", "d1", "d2", "d3"}, true, false},
		{"claim after the lease of what was cancelled", func(t *testing.T, c *client) func() {
			claimFirst(t, c, 50*time.Millisecond)
			_, err := c.Cancel(ctx, "d0")
			require.NoError(t, err)
			time.Sleep(60 * time.Millisecond)
			return func() { (&crasher{t: t, c: c, n: 3}).claim() }
		}, []string{"d0", "d1", "d2", "d3"}, false, false},
		{"requeue of a run", func(t *testing.T, c *client) func() {
			token := claimFirst(t, c, time.Hour)
			(&crasher{t: t, c: c}).report(store.Failed, "d0", token, due)
			return func() { _, err := c.Requeue(ctx, store.DeadID("d0"), durable.At(tomorrow)); require.NoError(t, err) }
		}, []string{"d0"}, true, true},
		{"all of a round", func(t *testing.T, c *client) func() {
			w := &crasher{t: t, c: c, n: 3}
			tokens := w.claim()
			return func() {
				r := w.claims()
				r.Reports = []store.Report{{Lease: store.Lease{ID: "d0", Token: tokens["d0"]}, End: store.Done}}
				r.Extend = []store.Lease{{ID: "d1", Token: tokens["d1"]}}
				w.do(r)
			}
		}, []string{"d0", "d1", "d2", "d3", "d4", "d5"}, false, false},
		{"claim wakes others", func(t *testing.T, c *client) func() {
			return func() { (&crasher{t: t, c: c, n: 3, handlers: []string{"other"}}).claim() }
		}, nil, true, false},
		{"schedule for another handler", func(t *testing.T, c *client) func() {
			return func() {
				_, err := c.Schedule(ctx, durable.Task{Key: "d0", Handler: "h2"}, durable.At(tomorrow))
				require.NoError(t, err)
			}
		}, []string{"d0"}, true, false},
		{"import", func(t *testing.T, c *client) func() {
			return func() {
				_, err := c.s.Change(ctx, 0, store.Stamp{Sender: "import", Number: 1}, store.Command{Op: store.Import, Items: []store.Item{
					{ID: "new", Entry: &store.Entry{Task: store.Task{ID: "new", Handler: "h", Record: []byte("\x01123456\x00")},
						State: store.Pending, At: store.TimeOf(tomorrow), Due: 1, Attempts: 2}},
					{ID: "new2", Entry: &store.Entry{Task: store.Task{ID: "new2", Handler: "h", Record: []byte("\x01123456\x00")},
						State: store.Dead, At: 5, Due: 1, Attempts: 2, Failures: []store.Failure{{Attempt: 2, Time: 3, Text: "text"}}}},
				}})
				require.NoError(t, err)
			}
		}, []string{"new", "new2"}, false, false},
		{"leave", func(t *testing.T, c *client) func() {
			w := &crasher{t: t, c: c, n: 2}
			w.claim()
			return func() { w.do(store.Round{Leave: true}) }
		}, []string{"d0", "d1"}, true, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			if testing.Short() && x.name != "claim" {
				t.Skip("takes long")
			}
			t.Parallel()
			// A killed server has written what it has acknowledged, also without a sync.
			args := []string{"--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0"}
			s := redistest.Start(t, args...)
			r := s.Client()
			c := newClient(r, WithShards(1))
			for i := range 2 { // dead letters
				put(t, c, fmt.Sprint("x", i), past(i))
			}
			(&crasher{t: t, c: c}).finish(store.Failed)
			for i := range 10 {
				put(t, c, fmt.Sprint("d", i), past(i))
				put(t, c, fmt.Sprint("p", i), durable.At(tomorrow.Add(time.Duration(i)*time.Second)))
			}
			do := x.prepare(t, c)
			before := dump(t, c)
			file := aofFile(t, s.Dir)
			size, err := os.Stat(file)
			require.NoError(t, err)
			do()
			r.Close()
			s.Kill()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			commands := readAOF(t, text, int(size.Size()))
			inside := commands // a command may be sent without MULTI
			if len(commands) > 1 {
				require.Equal(t, "MULTI", commands[0].name, "%v", commands)
				require.Equal(t, "EXEC", commands[len(commands)-1].name, "%v", commands)
				inside = commands[1:]
			}

			// A sample of the commands must do, because each needs three starts of a server:
			// another one each time, and three of a claim.
			places := rand.Perm(len(inside))
			if most := 1; os.Getenv("TICKLESS_CHAOS") != "long" {
				if x.name == "claim" {
					most = 3
				}
				places = places[:min(most, len(places))]
			}
			for _, i := range places {
				command := inside[i]
				for _, cut := range []int{(command.from + command.to) / 2, command.from} {
					if cut == command.from && x.name != "claim" {
						continue
					}
					dir := t.TempDir()
					require.NoError(t, os.CopyFS(dir, os.DirFS(s.Dir)))
					require.NoError(t, os.Truncate(aofFile(t, dir), int64(cut)))
					torn := fmt.Sprintf("torn in %s, the command %d of %d", command.name, i+1, len(inside))

					s := redistest.Start(t, append(args, "--dir", dir)...)
					r := s.Client()
					c := newClient(r, WithShards(1))
					require.Equal(t, before, dump(t, c), "%s: the torn script has an effect at the first start", torn)
					// A worker claims again, and gets the tasks of the claim that was cut
					// off.
					put(t, c, "later", durable.At(tomorrow))
					ids := map[string]bool{"later": true}
					for _, id := range x.ids {
						ids[id] = true
					}
					for id := range (&crasher{t: t, c: c, n: 3}).claim() {
						ids[id] = true
					}
					put(t, c, "later still", durable.At(tomorrow))
					ids["later still"] = true
					s.Kill()
					s.Restart()

					require.Equal(t, withoutIDs(before, ids), withoutIDs(dump(t, c), ids), "%s: a task of another script has changed", torn)
					unindexed, _, err := c.s.countUnindexed(ctx, c.s.shards[0])
					require.NoError(t, err)
					seen := unindexed != 0
					for _, id := range r.ZRange(ctx, c.key("", "lease"), 0, -1).Val() {
						if run, _ := parseRunState(r.HGet(ctx, c.key("", "run"), id).Val()); run.fencingToken == 0 {
							seen = true // when the lease ends
						}
					}
					rep, err := c.Repair(ctx)
					require.NoError(t, err)
					if rep.Requeued+rep.Doubled > 0 {
						require.True(t, seen, "%s: workers do not notice the damage that Repair corrects: %+v", torn, rep)
					}
					require.Equal(t, withoutIDs(before, ids), withoutIDs(dump(t, c), ids), "%s: Repair has changed a task of another script", torn)
					again, err := c.Repair(ctx)
					require.NoError(t, err)
					again.Looked = 0
					require.Zero(t, again, "%s: the second Repair still corrects %+v, after %+v", torn, again, rep)
					for id := range ids {
						info, err := c.Get(ctx, id)
						if slices.Contains(x.ids, id) && !x.kept && err != nil {
							require.ErrorIs(t, err, durable.ErrNotFound)
							continue
						}
						require.NoError(t, err, "%s: %s is lost", torn, id)
						if slices.Contains(x.ids, id) && x.later && info.State == durable.Pending && id != "d0" {
							require.False(t, info.At.Before(tomorrow), "%s: %s is early: %v", torn, id, info.At)
						}
					}
					r.Close()
					s.Kill()
				}
			}
			t.Logf("tested cuts in %d commands", len(inside))
		})
	}
}
