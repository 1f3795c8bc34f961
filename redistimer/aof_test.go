package redistimer

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/redistimer/internal/redistest"
)

// A logged command is one in an AOF, from its first byte to the last.
type logged struct {
	from, to int
	name     string
}

// readAOF takes apart what a server has written from an offset on.
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

// aofFile is the file that a server appends to.
func aofFile(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	if len(files) == 0 {
		return filepath.Join(dir, "appendonly.aof") // before Redis 7
	}
	return files[0]
}

// withoutIDs leaves out what a dump has of some tasks.
func withoutIDs(dump map[string]string, ids map[string]bool) map[string]string {
	out := maps.Clone(dump)
	maps.DeleteFunc(out, func(k, _ string) bool {
		_, id, _ := strings.Cut(k, " ")
		return ids[keyOf(id)]
	})
	return out
}

// TestAOF_CutInsideEveryCommand tears what each script writes to the AOF, inside each
// of its commands. Such a server starts, and cuts off the torn command alone: the
// commands before it stay behind a MULTI without EXEC, and are carried out at the
// start after that, together with the next transaction that was written. Nothing but
// the tasks of the torn script may suffer, and Repair finds those.
//
// A cut between two commands is another case: it is cut back to before the MULTI.
func TestAOF_CutInsideEveryCommand(t *testing.T) {
	ctx := context.Background()
	tomorrow := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	past := func(i int) When { return At(time.Unix(1_700_000_000+int64(i), 0)) }
	put := func(t *testing.T, c *Client, key string, w When) {
		_, err := c.Schedule(ctx, Task{Key: key, Handler: "h", Body: []byte("body of " + key)}, w)
		require.NoError(t, err)
	}
	// held has the first task that is due claimed, and returns its token.
	held := func(t *testing.T, c *Client, lease time.Duration) int64 {
		w := &crasher{t: t, c: c, n: 1, lease: lease}
		for _, token := range w.claim() {
			return token
		}
		t.Fatal("nothing was claimed")
		return 0
	}
	report := func(op, when string) func(t *testing.T, c *Client) func() {
		return func(t *testing.T, c *Client) func() {
			token := held(t, c, time.Hour)
			return func() { (&crasher{t: t, c: c}).report(op, "d0", token, when) }
		}
	}
	none := func(do func(c *Client) error) func(t *testing.T, c *Client) func() {
		return func(t *testing.T, c *Client) func() {
			return func() { require.NoError(t, do(c)) }
		}
	}
	due := strconv.FormatInt(tomorrow.UnixMicro(), 10)
	for _, x := range []struct {
		name string
		// prepare prepares what is torn, and returns it.
		prepare func(t *testing.T, c *Client) func()
		ids     []string // the tasks that it is about
		kept    bool     // which must exist afterwards
		later   bool     // and not be due before tomorrow
	}{
		{"schedule", none(func(c *Client) error {
			_, err := c.Schedule(ctx, Task{Key: "new", Handler: "h"}, At(tomorrow))
			return err
		}), []string{"new"}, false, true},
		{"schedule replaces", none(func(c *Client) error {
			_, err := c.Schedule(ctx, Task{Key: "p0", Handler: "h2"}, At(tomorrow.Add(time.Hour)))
			return err
		}), []string{"p0"}, true, true},
		{"schedule batch", none(func(c *Client) error {
			_, err := c.ScheduleBatch(ctx, []Item{{Task{Key: "a", Handler: "h"}, At(tomorrow)},
				{Task{Key: "p0", Handler: "h2"}, At(tomorrow)}, {Task{Key: "x0", Handler: "h"}, At(tomorrow)}})
			return err
		}), []string{"a", "p0", "x0"}, false, true},
		{"schedule follows", func(t *testing.T, c *Client) func() {
			held(t, c, time.Hour)
			return func() { put(t, c, "d0", At(tomorrow)) }
		}, []string{"d0"}, true, false},
		{"cancel", none(func(c *Client) error {
			_, err := c.CancelBatch(ctx, []string{"p0", "p1"})
			return err
		}), []string{"p0", "p1"}, false, true},
		{"cancel of what runs", func(t *testing.T, c *Client) func() {
			held(t, c, time.Hour)
			return func() { _, err := c.Cancel(ctx, "d0"); require.NoError(t, err) }
		}, []string{"d0"}, true, false},
		{"reschedule", none(func(c *Client) error {
			_, err := c.Reschedule(ctx, "p0", At(tomorrow.Add(time.Hour)))
			return err
		}), []string{"p0"}, true, true},
		{"claim", func(t *testing.T, c *Client) func() {
			return func() { (&crasher{t: t, c: c, n: 3}).claim() }
		}, []string{"d0", "d1", "d2"}, true, false},
		{"claim after a lease", func(t *testing.T, c *Client) func() {
			held(t, c, time.Millisecond)
			time.Sleep(5 * time.Millisecond)
			return func() { (&crasher{t: t, c: c, n: 3}).claim() }
		}, []string{"d0", "d1", "d2", "d3"}, true, false},
		{"done", report("d", ""), []string{"d0"}, false, false},
		{"done, repeats", report("d", due), []string{"d0"}, true, true},
		{"retry", report("r", due), []string{"d0"}, true, true},
		{"dead", report("x", ""), []string{"d0"}, true, false},
		{"dead, repeats", report("x", due), []string{"d0"}, true, true},
		{"handed back", report("b", ""), []string{"d0"}, true, false},
		{"requeue", none(func(c *Client) error {
			_, err := c.Requeue(ctx, "x0", At(tomorrow))
			return err
		}), []string{"x0"}, true, true},
		{"purge", none(func(c *Client) error {
			_, err := c.Purge(ctx, "x0")
			return err
		}), []string{"x0"}, false, false},
		{"pause", none(func(c *Client) error { return c.Pause(ctx) }), nil, true, true},
		{"resume", func(t *testing.T, c *Client) func() {
			require.NoError(t, c.Pause(ctx))
			return func() { require.NoError(t, c.Resume(ctx)) }
		}, nil, true, true},
		{"extend", func(t *testing.T, c *Client) func() {
			token := held(t, c, time.Hour)
			return func() {
				(&crasher{t: t, c: c}).send(extendScript, "-", 2*time.Hour.Microseconds(), "d0", token)
			}
		}, []string{"d0"}, true, false},
		{"looked over", func(t *testing.T, c *Client) func() {
			return func() {
				_, err := c.one(ctx, checkedScript, c.shards[0], "run", 1)
				require.NoError(t, err)
			}
		}, nil, true, true},
		{"repair", func(t *testing.T, c *Client) func() {
			r, keys := c.redis, c.shards[0].keys
			require.NoError(t, r.ZRem(ctx, keys[0], "p0").Err())
			require.NoError(t, r.ZAdd(ctx, keys[1], redis.Z{Score: 1, Member: "p1"}).Err())
			require.NoError(t, r.HSet(ctx, keys[2], "p2\x00new", r.HGet(ctx, keys[2], "p2").Val()).Err())
			return func() {
				_, err := c.one(ctx, repairScript, c.shards[0], "task", "0", 1000)
				require.NoError(t, err)
			}
		}, []string{"p0", "p1", "p2"}, true, true},
		{"schedule, and forgets senders", func(t *testing.T, c *Client) func() {
			for i := range 150 {
				require.NoError(t, c.redis.HSet(ctx, c.shards[0].keys[keyMeta], fmt.Sprint("s:gone.", i), digits16(1)+" 2").Err())
			}
			other := New(c.redis, WithShards(1), silent)
			_, err := other.Check(ctx)
			require.NoError(t, err)
			return func() { put(t, other, "new", At(tomorrow)) }
		}, []string{"new"}, false, true},
		{"schedule batch with a key twice", none(func(c *Client) error {
			_, err := c.ScheduleBatch(ctx, []Item{{Task{Key: "a", Handler: "h"}, At(tomorrow)},
				{Task{Key: "a", Handler: "h2"}, At(tomorrow.Add(time.Hour))}, {Task{Key: "b", Handler: "h"}, At(tomorrow)}})
			return err
		}), []string{"a", "b"}, false, true},
		{"schedule of a dead letter", none(func(c *Client) error {
			_, err := c.Schedule(ctx, Task{Key: "x0", Handler: "h2"}, At(tomorrow))
			return err
		}), []string{"x0"}, true, true},
		{"reschedule of what runs", func(t *testing.T, c *Client) func() {
			held(t, c, time.Hour)
			return func() { _, err := c.Reschedule(ctx, "d0", At(tomorrow)); require.NoError(t, err) }
		}, []string{"d0"}, true, false},
		{"done, and what follows", func(t *testing.T, c *Client) func() {
			token := held(t, c, time.Hour)
			put(t, c, "d0", At(tomorrow))
			return func() { (&crasher{t: t, c: c}).report("d", "d0", token, "") }
		}, []string{"d0"}, true, true},
		{"done, and cancelled", func(t *testing.T, c *Client) func() {
			token := held(t, c, time.Hour)
			_, err := c.Cancel(ctx, "d0")
			require.NoError(t, err)
			return func() { (&crasher{t: t, c: c}).report("d", "d0", token, due) }
		}, []string{"d0"}, false, true},
		{"many reports", func(t *testing.T, c *Client) func() {
			w := &crasher{t: t, c: c, n: 4}
			tokens := w.claim()
			return func() {
				var args []any
				for i, op := range []string{"d", "r", "x", "d"} {
					id := fmt.Sprint("d", i)
					args = append(args, op, id, tokens[id], []any{"", due, "", due}[i], 1, "text")
				}
				w.send(finishScript, "s:crasher.f", args...)
			}
		}, []string{"d0", "d1", "d2", "d3"}, false, false},
		{"unknown", report("u", due), []string{"d0"}, true, true},
		{"claim after the lease of what is poison", func(t *testing.T, c *Client) func() {
			for range 2 {
				held(t, c, time.Millisecond)
				time.Sleep(5 * time.Millisecond)
			}
			held(t, c, time.Millisecond)
			time.Sleep(5 * time.Millisecond)
			return func() { (&crasher{t: t, c: c, n: 3}).claim() }
		}, []string{"d0", "d1", "d2", "d3", "d4", "d5"}, true, false},
		{"claim after the lease of what follows", func(t *testing.T, c *Client) func() {
			held(t, c, 50*time.Millisecond)
			put(t, c, "d0", At(tomorrow))
			time.Sleep(60 * time.Millisecond)
			return func() { (&crasher{t: t, c: c, n: 3}).claim() }
		}, []string{"d0", "d1", "d2", "d3"}, true, false},
		{"claim after the lease of what was cancelled", func(t *testing.T, c *Client) func() {
			held(t, c, 50*time.Millisecond)
			_, err := c.Cancel(ctx, "d0")
			require.NoError(t, err)
			time.Sleep(60 * time.Millisecond)
			return func() { (&crasher{t: t, c: c, n: 3}).claim() }
		}, []string{"d0", "d1", "d2", "d3"}, false, false},
		{"requeue of a run", func(t *testing.T, c *Client) func() {
			token := held(t, c, time.Hour)
			(&crasher{t: t, c: c}).report("x", "d0", token, due)
			return func() { _, err := c.Requeue(ctx, deadID("d0"), At(tomorrow)); require.NoError(t, err) }
		}, []string{"d0"}, true, true},
		{"leave", func(t *testing.T, c *Client) func() {
			w := &crasher{t: t, c: c, n: 2}
			w.claim()
			return func() { w.send(claimScript, "s:crasher", -1, 1, 3, 0, 0) }
		}, []string{"d0", "d1"}, true, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			if testing.Short() && x.name != "claim" {
				t.Skip("takes long")
			}
			t.Parallel()
			args := []string{"--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"}
			s := redistest.Start(t, args...)
			r := s.Client()
			c := New(r, WithShards(1), silent)
			for i := range 2 { // dead letters
				put(t, c, fmt.Sprint("x", i), past(i))
			}
			(&crasher{t: t, c: c}).finish("x")
			for i := range 10 {
				put(t, c, fmt.Sprint("d", i), past(i))
				put(t, c, fmt.Sprint("p", i), At(tomorrow.Add(time.Duration(i)*time.Second)))
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
			inside := commands // of which there may be one alone
			if len(commands) > 1 {
				require.Equal(t, "MULTI", commands[0].name, "%v", commands)
				require.Equal(t, "EXEC", commands[len(commands)-1].name, "%v", commands)
				inside = commands[1:]
			}

			for i, command := range inside {
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
					c := New(r, WithShards(1), silent)
					require.Equal(t, before, dump(t, c), "%s: it is not there at first", torn)
					// The life that goes on. What it claims is what the torn claim had.
					put(t, c, "later", At(tomorrow))
					ids := map[string]bool{"later": true}
					for _, id := range x.ids {
						ids[id] = true
					}
					for id := range (&crasher{t: t, c: c, n: 3}).claim() {
						ids[id] = true
					}
					put(t, c, "later still", At(tomorrow))
					ids["later still"] = true
					s.Kill()
					s.Restart()

					require.Equal(t, withoutIDs(before, ids), withoutIDs(dump(t, c), ids), "%s: others suffer", torn)
					rep, err := c.Repair(ctx)
					require.NoError(t, err)
					require.Equal(t, withoutIDs(before, ids), withoutIDs(dump(t, c), ids), "%s: others suffer by Repair", torn)
					again, err := c.Repair(ctx)
					require.NoError(t, err)
					require.False(t, again.found(), "%s: Repair leaves %+v, after %+v", torn, again, rep)
					for id := range ids {
						info, err := c.Get(ctx, id)
						if slices.Contains(x.ids, id) && !x.kept && err != nil {
							require.ErrorIs(t, err, ErrNotFound)
							continue
						}
						require.NoError(t, err, "%s: %s is lost", torn, id)
						if slices.Contains(x.ids, id) && x.later && info.State == Pending && id != "d0" {
							require.False(t, info.At.Before(tomorrow), "%s: %s is early: %v", torn, id, info.At)
						}
					}
					r.Close()
					s.Kill()
				}
			}
			t.Logf("torn in %d commands", len(inside))
		})
	}
}

// A worker looks over what a restart has left, by itself.
func TestWorker_LooksOverAServerThatWasStartedAgain(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t, redistest.AOF()...)
	r := s.Client()
	defer r.Close()
	c := New(r, WithShards(4), silent)
	w := NewWorker(c)
	ran := make(chan string, 10)
	w.Handle("h", func(_ context.Context, d Delivery) error {
		ran <- d.Key
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	_, err := c.Schedule(ctx, Task{Key: "first", Handler: "h"}, After(0))
	require.NoError(t, err)
	<-ran
	for _, id := range []string{"today", "tomorrow"} {
		when := After(3 * time.Second)
		if id == "tomorrow" {
			when = After(24 * time.Hour)
		}
		_, err := c.Schedule(ctx, Task{Key: id, Handler: "h"}, when)
		require.NoError(t, err)
		// As a torn claim leaves it.
		require.NoError(t, r.ZRem(ctx, c.shardOf(id).keys[0], id).Err())
	}
	s.Kill()
	s.Restart()
	require.Equal(t, "today", <-ran)
	require.Eventually(t, func() bool {
		info, err := c.Get(ctx, "tomorrow")
		return err == nil && time.Until(info.At) > 23*time.Hour
	}, time.Minute, 10*time.Millisecond, "where it was, and not at once")
	require.NoError(t, w.Shutdown(ctx))
	require.NoError(t, <-done)
	require.Empty(t, ran)
}
