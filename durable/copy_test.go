package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// queue fills a store with about 9n tasks, in all states and with unusual names.
func queue(t *testing.T, mem *memstore.Store, n int) *durable.Client {
	t.Helper()
	c := durable.New(mem, quiet)
	w := durable.NewWorker(c)
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		if d.Key[0] == 'd' {
			return durable.NoRetry(errors.New("no \xff"))
		}
		return durable.RetryAfter(errors.New("later"), time.Hour)
	})
	for i := range n {
		schedule(t, c, durable.Task{Key: fmt.Sprint("pending", i), Body: []byte("body")}, durable.After(10*time.Minute))
		schedule(t, c, durable.Task{Key: fmt.Sprint("pending\u2028ü<", i), Body: []byte{0, 255}}, durable.After(11*time.Minute))
		schedule(t, c, durable.Task{Key: fmt.Sprint("tried", i)}, durable.After(0))
		schedule(t, c, durable.Task{Key: fmt.Sprint("dead", i), Every: time.Hour * time.Duration(i%2)}, durable.After(0))
	}
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	synctest.Wait()
	require.NoError(t, w.Shutdown(ctx))
	require.NoError(t, <-done)
	out, err := c.Requeue(ctx, store.DeadID("dead1"), durable.After(time.Hour))
	require.NoError(t, err)
	require.Equal(t, durable.Moved, out)

	// These tasks were claimed by a worker that died.
	for i := range n {
		for _, what := range []string{"running", "follows", "cancelled"} {
			schedule(t, c, durable.Task{Key: fmt.Sprint(what, i)}, durable.After(0))
		}
		schedule(t, c, durable.Task{Key: fmt.Sprint("replaced", i), Every: time.Hour}, durable.After(0))
	}
	for shard := range mem.Shards() {
		for more := true; more; {
			a, err := mem.Do(ctx, shard, store.Stamp{Sender: "gone", Number: time.Now().UnixNano()}, store.Round{Lease: time.Minute, MaxCrashes: 3,
				Claim: store.Claim{Asked: true, Max: 100, Handlers: []string{"h"}}})
			require.NoError(t, err)
			more = len(a.Tasks) > 0
			time.Sleep(time.Microsecond)
		}
	}
	for i := range n {
		follows := durable.Task{Key: fmt.Sprint("follows", i), Body: []byte("another"), Handler: "h"}
		_, err := c.Schedule(ctx, follows, durable.After(20*time.Minute))
		require.NoError(t, err)
		for _, what := range []string{"cancelled", "replaced"} {
			_, err = c.Cancel(ctx, fmt.Sprint(what, i))
			require.NoError(t, err)
		}
		schedule(t, c, durable.Task{Key: fmt.Sprint("replaced", i), Every: time.Hour, Body: []byte("another")}, durable.After(20*time.Minute))
	}
	return c
}

// entries returns all entries of a store, by ID, without their Versions: a copy has others.
func entries(t *testing.T, st store.Store) map[string]store.Entry {
	t.Helper()
	all := make(map[string]store.Entry)
	for shard := range st.Shards() {
		for cursor := (store.Cursor{}); ; {
			p, err := st.List(ctx, shard, store.Filter{}, cursor, 100)
			require.NoError(t, err)
			for _, e := range p.Entries {
				require.NotContains(t, all, e.ID)
				e.Version = 0
				all[e.ID] = e
			}
			if cursor = p.Next; cursor == (store.Cursor{}) {
				break
			}
		}
	}
	return all
}

// moved returns the entries that a copy of the store should have.
func moved(all map[string]store.Entry, now store.Time) map[string]store.Entry {
	for id, e := range all {
		switch {
		case e.Following:
			all[id] = store.Entry{Task: *e.NextTask, State: store.Pending, At: e.Next, Due: e.Next}
		case e.Stopping:
			delete(all, id)
		case e.State == store.Running:
			e.State, e.At, e.Token = store.Pending, now, 0
			all[id] = e
		}
	}
	return all
}

func now(t *testing.T, st store.Store) store.Time {
	t.Helper()
	now, err := st.Now(ctx, 0)
	require.NoError(t, err)
	return now
}

// through has the two ways to move tasks to another store: directly, and through a
// file.
var through = map[string]func(dst, src store.Store) (durable.Copied, error){
	"Copy": func(dst, src store.Store) (durable.Copied, error) { return durable.Copy(ctx, dst, src) },
	"File": func(dst, src store.Store) (durable.Copied, error) {
		var file bytes.Buffer
		n, err := durable.Export(ctx, &file, src)
		if err != nil {
			return durable.Copied{}, err
		}
		copied, err := durable.Import(ctx, dst, iotest.HalfReader(&file))
		if err == nil && copied.Added+copied.Kept != n {
			err = fmt.Errorf("exported %d, imported %+v", n, copied)
		}
		return copied, err
	},
}

// All tasks and their attempts move to a store with another number of shards, even if
// commands fail.
func TestCopy(t *testing.T) {
	for name, move := range through {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, mem *memstore.Store) {
				queue(t, mem, 100)
				before := entries(t, mem)
				to := memstore.New(memstore.WithShards(16))
				f := &faulty{Store: to, lose: ratio(1, 3)}
				for {
					_, err := move(f, mem)
					if err == nil {
						break
					}
					require.ErrorIs(t, err, errFault)
					if len(entries(t, to)) > 0 {
						f.lose = nil
					}
				}
				require.Equal(t, before, entries(t, mem), "the source has changed")
				want := moved(entries(t, mem), now(t, to))
				require.Greater(t, len(want), 100*6)
				require.Equal(t, want, entries(t, to))
				n, err := move(to, mem)
				require.NoError(t, err)
				require.Equal(t, durable.Copied{Kept: len(want)}, n, "the tasks have been copied before")
				require.Equal(t, want, entries(t, to))
			})
		})
	}
}

// Workers use the new store while a copy fails and is repeated. No task runs before all
// are copied. Then each runs once.
func TestCopy_NothingRunsTwice(t *testing.T) {
	for name, move := range through {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, mem *memstore.Store) {
				c := durable.New(mem, quiet)
				for i := range 1000 {
					schedule(t, c, durable.Task{Key: fmt.Sprint(i)}, durable.After(0))
				}
				require.NoError(t, c.Pause(ctx))
				to := memstore.New(memstore.WithShards(1))
				f := &faulty{Store: to}
				ran := make(deliveries, 3000)
				w := durable.NewWorker(durable.New(to, quiet))
				w.Handle("h", ran.handle)
				start(t, w)
				for after := 2; ; after++ {
					n := 0
					f.refuse = func() bool { n++; return n > after }
					_, err := move(f, mem)
					synctest.Wait()
					require.Empty(t, ran, "a task ran before all were copied")
					if err == nil {
						break
					}
					require.ErrorIs(t, err, errFault)
				}
				require.NoError(t, durable.New(to, quiet).Resume(ctx))
				synctest.Wait()
				require.Len(t, ran, 1000)
				require.Empty(t, entries(t, to))
			})
		})
	}
}

// Tasks that the destination already has do not change, even if the source has the same
// key. They wait until Resume.
func TestCopy_IntoAStoreThatHasTasks(t *testing.T) {
	for name, move := range through {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, src *memstore.Store) {
				dst := memstore.New(memstore.WithShards(1))
				from, to := durable.New(src, quiet), durable.New(dst, quiet)
				schedule(t, from, durable.Task{Key: "both", Body: []byte("src")}, durable.After(time.Second))
				schedule(t, from, durable.Task{Key: "src", Body: []byte("src")}, durable.After(2*time.Second))
				schedule(t, to, durable.Task{Key: "both", Body: []byte("dst")}, durable.After(3*time.Second))
				schedule(t, to, durable.Task{Key: "dst", Body: []byte("dst")}, durable.After(4*time.Second))
				copied, err := move(dst, src)
				require.NoError(t, err)
				require.Equal(t, durable.Copied{Added: 1, Kept: 1}, copied)
				ran := make(deliveries, 10)
				w := durable.NewWorker(to, durable.WithConcurrency(1))
				w.Handle("h", ran.handle)
				start(t, w)
				none(t, ran, time.Minute)
				require.NoError(t, to.Resume(ctx))
				for _, want := range []string{"src of src", "dst of both", "dst of dst"} {
					d := ran.next(t)
					require.Equal(t, want, string(d.Body)+" of "+d.Key)
				}
				none(t, ran, time.Minute)
				require.Len(t, entries(t, src), 2)
			})
		})
	}
}

// A copy of a store to itself is refused. If the destination is another value for the
// same store, Copy only pauses the store.
func TestCopy_OntoItself(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(time.Hour))
		before := entries(t, mem)
		require.Panics(t, func() { _, _ = durable.Copy(ctx, mem, nil) })
		_, err := durable.Copy(ctx, mem, mem)
		require.ErrorIs(t, err, durable.ErrInvalid)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Paused)
		copied, err := durable.Copy(ctx, &faulty{Store: mem}, mem)
		require.NoError(t, err)
		require.Equal(t, durable.Copied{Kept: 1}, copied)
		require.Equal(t, before, entries(t, mem))
	})
}

// tardy is a store that receives the first import late.
type tardy struct {
	store.Store
	imports int
	late    time.Duration // 0: the call fails, and the command arrives when land is called
	land    func() error
}

func (s *tardy) Change(ctx context.Context, shard int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if c.Op == store.Import {
		s.imports++
	}
	if c.Op == store.Import && s.imports == 1 {
		if s.late == 0 {
			s.land = func() error {
				_, err := s.Store.Change(context.Background(), shard, st, c)
				return err
			}
			return nil, errFault
		}
		time.Sleep(s.late)
	}
	return s.Store.Change(ctx, shard, st, c)
}

// An import arrives after its context's deadline, or after a minute if there is no
// deadline. It must have no effect, because its task may have run by then.
func TestCopy_LandsLate(t *testing.T) {
	for name, wait := range map[string]time.Duration{"with a deadline": 2 * time.Second, "without": time.Minute} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, src *memstore.Store) {
				schedule(t, durable.New(src, quiet), durable.Task{Key: "k"}, durable.After(0))
				to := memstore.New()
				dst := &tardy{Store: to}
				first := ctx
				if wait < time.Minute {
					var cancel context.CancelFunc
					first, cancel = context.WithTimeout(ctx, wait)
					defer cancel()
				}
				_, err := durable.Copy(first, dst, src)
				require.ErrorIs(t, err, errFault)
				copied, err := durable.Copy(ctx, dst, src)
				require.NoError(t, err)
				require.Equal(t, durable.Copied{Added: 1}, copied)

				c := durable.New(to, quiet)
				require.NoError(t, c.Resume(ctx))
				w := durable.NewWorker(c)
				var runs atomic.Int32
				w.Handle("h", func(context.Context, durable.Delivery) error { runs.Add(1); return nil })
				start(t, w)
				time.Sleep(wait + time.Millisecond)
				require.ErrorIs(t, dst.land(), store.ErrLate)
				time.Sleep(time.Minute)
				require.EqualValues(t, 1, runs.Load())
			})
		})
	}
}

// Copy fails if the store takes more than a minute for a command.
func TestCopy_IntoATardyStore(t *testing.T) {
	bubble(t, func(t *testing.T, src *memstore.Store) {
		schedule(t, durable.New(src, quiet), durable.Task{Key: "k"}, durable.After(time.Hour))
		dst := &tardy{Store: memstore.New(), late: 2 * time.Minute}
		_, err := durable.Copy(ctx, dst, src)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, dst.imports)
		copied, err := durable.Copy(ctx, dst, src)
		require.NoError(t, err)
		require.Equal(t, durable.Copied{Added: 1}, copied)
	})
}

func TestCopy_OfASourceInUse(t *testing.T) {
	for name, move := range through {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, mem *memstore.Store) {
				c := durable.New(mem, quiet)
				for i := range 1000 {
					schedule(t, c, durable.Task{Key: fmt.Sprint(i)}, durable.After(time.Hour))
				}
				src := &used{Store: mem, use: func() { schedule(t, c, durable.Task{Key: "new"}, durable.After(0)) }}
				to := memstore.New()
				_, err := move(to, src)
				require.ErrorIs(t, err, durable.ErrChanged)
				if name == "Copy" {
					require.GreaterOrEqual(t, len(entries(t, to)), 1000)
				}
				_, err = move(to, mem)
				require.NoError(t, err)
				require.Len(t, entries(t, to), 1001)
			})
		})
	}
}

// used is a store whose tasks change while they are listed.
type used struct {
	store.Store
	use func()
}

func (u *used) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (store.Page, error) {
	if shard == 2 && u.use != nil {
		u.use()
		u.use = nil
	}
	return u.Store.List(ctx, shard, f, c, limit)
}

// export returns a file with a few tasks, and their entries.
func export(t *testing.T) (file []byte, want map[string]store.Entry) {
	t.Helper()
	var b bytes.Buffer
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		queue(t, mem, 2)
		_, err := durable.Export(ctx, &b, mem)
		require.NoError(t, err)
		want = moved(entries(t, mem), 0)
	})
	return b.Bytes(), want
}

// Import returns an error for every file that was cut off or changed. The tasks that it
// has imported by then are correct.
func TestImport_DamagedFile(t *testing.T) {
	file, want := export(t)
	step := 7 // odd, so that each bit has its turn
	switch {
	case os.Getenv("TICKLESS_STRESS") != "":
		step = 1
	case testing.Short():
		step = 11
	}
	first := rand.IntN(step) // other bytes each time
	try := func(what string, b []byte) {
		to := memstore.New()
		_, err := durable.Import(ctx, to, bytes.NewReader(b))
		if err == nil {
			// A change of case in a field name is harmless, because JSON ignores it.
			require.True(t, strings.EqualFold(string(b), string(file)), "%s: Import did not detect the damage", what)
		} else if !errors.Is(err, durable.ErrDamaged) {
			require.ErrorContains(t, err, "version", what)
		}
		got := entries(t, to)
		for id, e := range got {
			e.At = want[id].At // a running task is copied as due immediately
			require.Equal(t, want[id], e, what)
		}
		require.True(t, err != nil || len(got) == len(want), what)
	}
	for i := first; i < len(file); i += step {
		try(fmt.Sprintf("cut at %d", i), file[:i])
	}
	for i := first; i < len(file); i += step {
		b := bytes.Clone(file)
		b[i] ^= 1 << (i % 8)
		try(fmt.Sprintf("bit %d of byte %d", i%8, i), b)
	}
	lines := bytes.SplitAfter(file, []byte("\n"))
	for i := range len(lines) - 1 {
		without := append(append([][]byte{}, lines[:i]...), lines[i+1:]...)
		try(fmt.Sprintf("without line %d", i+1), bytes.Join(without, nil))
	}
	try("something behind it", append(bytes.Clone(file), '\n'))
	try("twice", append(bytes.Clone(file), file...))
	try("a long line", append(bytes.Clone(lines[0]), bytes.Repeat([]byte("x"), 3<<20)...))
}

// Import imports a damaged file up to the damage. A second Import, with the repaired
// file, imports the rest.
func TestImport_GoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		body := bytes.Repeat([]byte("x"), 10_000)
		for i := range 500 {
			schedule(t, c, durable.Task{Key: fmt.Sprint(i), Body: body}, durable.After(time.Hour))
		}
		var b bytes.Buffer
		n, err := durable.Export(ctx, &b, mem)
		require.NoError(t, err)
		require.Equal(t, 500, n)
		bad := bytes.Clone(b.Bytes())
		bad[len(bad)*2/3] ^= 1
		to := memstore.New(memstore.WithShards(1))
		some, err := durable.Import(ctx, to, bytes.NewReader(bad))
		require.ErrorIs(t, err, durable.ErrDamaged)
		require.Greater(t, some.Added, 100)
		require.Less(t, some.Added, 400)
		require.Len(t, entries(t, to), some.Added)
		rest, err := durable.Import(ctx, to, &b)
		require.NoError(t, err)
		require.Equal(t, durable.Copied{Added: 500 - some.Added, Kept: some.Added}, rest)
		require.Equal(t, entries(t, mem), entries(t, to))
	})
}

// A handler's new name is that of its tasks, of all follow-ups, and of its pause.
func TestImport_RenameHandler(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		task := func(handler string) durable.Task {
			return durable.Task{Key: "k", Handler: handler, Body: []byte("body"), Headers: map[string]string{"a": "b"},
				OnSuccess: &durable.Task{Handler: handler, Body: []byte("second"), OnFailure: &durable.Task{Handler: handler}},
				OnFailure: &durable.Task{Handler: "other", OnSuccess: &durable.Task{Handler: handler, Body: []byte("third")}}}
		}
		schedule(t, c, task("old"), durable.After(time.Hour))
		require.NoError(t, c.PauseHandler(ctx, "old", "why"))
		var b bytes.Buffer
		_, err := durable.Export(ctx, &b, mem)
		require.NoError(t, err)
		to := durable.New(memstore.New(), quiet)
		_, err = durable.Import(ctx, to.Store(), &b, durable.RenameHandler("old", "a longer name"))
		require.NoError(t, err)
		info, err := to.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, task("a longer name"), info.Task)
		require.True(t, info.HandlerPaused)
		paused, err := to.PausedHandlers(ctx)
		require.NoError(t, err)
		require.Len(t, paused, 1)
		require.Equal(t, "why", paused["a longer name"].Note)
	})
}

func TestImport_Refuses(t *testing.T) {
	for _, x := range []struct{ file, want string }{
		{"", "line 1: the file ends too early"},
		{"hello\n", "line 1: this is not a file of exported tasks"},
		{"{}\n", `line 1: this is not a file of exported tasks: unknown format ""`},
		{`{"format":"tickless tasks","version":2,"new":1}` + "\n", "the file has format version 2, but this program supports version 1"},
	} {
		to := memstore.New()
		_, err := durable.Import(ctx, to, strings.NewReader(x.file))
		require.ErrorContains(t, err, x.want)
		st, err := to.Stats(ctx, 0)
		require.NoError(t, err)
		require.False(t, st.Paused, "Import paused the store, but read nothing")
	}
	_, err := durable.Import(ctx, memstore.New(), iotest.ErrReader(errFault))
	require.ErrorIs(t, err, errFault)
	require.NotErrorIs(t, err, durable.ErrDamaged)
}

func TestExport_WriterThatFails(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		for i := range 1000 {
			schedule(t, c, durable.Task{Key: fmt.Sprint(i), Body: make([]byte, 1000)}, durable.After(time.Hour))
		}
		for _, room := range []int{0, 100_000} {
			r, w := io.Pipe()
			go func() {
				_, _ = io.CopyN(io.Discard, r, int64(room))
				r.CloseWithError(errFault)
			}()
			_, err := durable.Export(ctx, w, mem)
			require.ErrorIs(t, err, errFault)
		}
	})
}

// Import must still read this file, which the first version of Export wrote.
func TestImport_FirstVersion(t *testing.T) {
	file := `{"format":"tickless tasks","version":1,"time":"2026-01-02T03:04:05.000006Z"}
{"id":"order-17","handler":"remind","record":"AWdlbmVyYXRpAGJvZHk=","state":"pending","at":"2026-01-02T04:04:05Z","due":"2026-01-02T03:04:05Z","attempts":2,"crashes":1,"failures":[{"attempt":1,"time":"2026-01-02T03:04:05.5Z","text":"<busy>"}]}
{"id":{"base64":"/w=="},"handler":"h","schedule":"daily","state":"running","at":"2026-01-02T04:04:05Z","due":"2026-01-02T03:04:05Z","attempts":1,"following":true,"next":"2026-01-02T05:04:05Z","next_task":{"id":{"base64":"/w=="},"handler":"other"}}
{"tasks":2,"crc32c":"%s"}
{"id":"k\u0000","handler":"h","state":"dead","at":"2026-01-02T04:04:05Z","due":"2026-01-02T03:04:05Z","runs":3}
{"tasks":3,"crc32c":"%s","end":true}
`
	at := func(hour int) store.Time { return store.TimeOf(time.Date(2026, 1, 2, hour, 4, 5, 0, time.UTC)) }
	file = fmt.Sprintf(file, "b66ee99e", "fedb3c3a")
	to := memstore.New()
	copied, err := durable.Import(ctx, to, strings.NewReader(file))
	require.ErrorIs(t, err, durable.ErrInvalid)
	require.ErrorContains(t, err, `the key "\xff" must have`)
	require.Equal(t, durable.Copied{Added: 2, Refused: 1}, copied)
	require.Equal(t, map[string]store.Entry{
		"order-17": {Task: store.Task{ID: "order-17", Handler: "remind", Record: []byte("\x01generati\x00body")}, State: store.Pending,
			At: at(4), Due: at(3), Attempts: 2, Crashes: 1, Failures: []store.Failure{{Attempt: 1, Time: at(3) + 500_000, Text: "<busy>"}}},
		"k\x00": {Task: store.Task{ID: "k\x00", Handler: "h"}, State: store.Dead, At: at(4), Due: at(3), Runs: 3},
	}, entries(t, to))
}

// Export writes exactly what docs/durable.md says.
func TestExport_WritesWhatIsDocumented(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memstore.Store) {
		st := memstore.New(memstore.WithShards(1))
		lines := []string{
			`{"format":"tickless tasks","version":1,"time":"2000-01-01T00:00:00Z"}`,
			`{"id":"order-17","handler":"remind","record":"AWdlbmVyYXRpAGJvZHk=","state":"pending","at":"2026-01-02T04:04:05Z","due":"2026-01-02T03:04:05.25Z","attempts":2,"failures":[{"attempt":1,"time":"2026-01-02T03:04:05.000006Z","text":"<büsy>"}]}`,
			`{"id":"tägl\u2028ich<","handler":"h","schedule":"daily","state":"pending","at":"2026-01-02T05:04:05Z","due":"2026-01-02T05:04:05Z"}`,
			`{"id":"k\u0000","handler":"h","state":"dead","at":"2026-01-02T04:04:05Z","due":"2026-01-02T03:04:05Z","crashes":1,"runs":3}`,
		}
		lines[2] = strings.Replace(lines[2], "\u2028", `\u2028`, 1)
		file := strings.Join(lines, "\n") + "\n"
		sum := fmt.Sprintf(`{"tasks":3,"crc32c":"%08x","end":true}`, crc32.Checksum([]byte(file), crc32.MakeTable(crc32.Castagnoli)))
		file += sum + "\n"
		_, err := durable.Import(ctx, st, strings.NewReader(file))
		require.NoError(t, err)
		var out strings.Builder
		n, err := durable.Export(ctx, &out, st)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		require.Equal(t, file, out.String())
	})
}
