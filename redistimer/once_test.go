package redistimer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/redistimer/internal/redistest"
)

var silent = WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// dump returns what a queue of one shard has in Redis, but for meta and wake. What
// is different each time, tokens and the times of claims and deaths, is left out.
func dump(t *testing.T, c *Client) map[string]string {
	t.Helper()
	ctx := context.Background()
	out := make(map[string]string)
	keys := c.shards[0].keys
	for i, name := range keyNames[:6] {
		switch name {
		case "due", "lease", "dead":
			for _, z := range c.redis.ZRangeWithScores(ctx, keys[i], 0, -1).Val() {
				score := strconv.FormatFloat(z.Score, 'f', 0, 64)
				if name != "due" {
					score = ""
				}
				out[name+" "+z.Member.(string)] = score
			}
		case "run":
			for id, s := range c.redis.HGetAll(ctx, keys[i]).Val() {
				token, rest, _ := strings.Cut(s, " ")
				out["run "+id] = fmt.Sprint(token != "0", " ", rest)
			}
		case "task":
			for id, s := range c.redis.HGetAll(ctx, keys[i]).Val() {
				task, _, err := decode(keyOf(id), s)
				require.NoError(t, err)
				out["task "+id] = fmt.Sprint(s[:dueSize], task)
			}
		default:
			for id, s := range c.redis.HGetAll(ctx, keys[i]).Val() {
				out[name+" "+id] = fmt.Sprint(len(parseFailures(s)))
			}
		}
	}
	return out
}

// A crasher claims tasks and reports on them, as a worker does.
type crasher struct {
	t      *testing.T
	c      *Client
	n      int           // of a claim; zero is 100
	lease  time.Duration // zero is an hour
	number int64
	lost   int // commands that had to be sent again, since they had no answer
}

func (w *crasher) send(s *script, sender string, args ...any) *redis.Cmd {
	for w.c.know(context.Background()) != nil {
		w.lost++
		require.Less(w.t, w.lost, 1000)
	}
	w.number = w.c.next(w.number)
	for {
		cmd := w.c.run(context.Background(), call{s, w.c.shards[0], args, header{sender: sender, number: w.number}})[0]
		if cmd.Err() == nil {
			return cmd
		}
		require.ErrorContains(w.t, cmd.Err(), "EOF")
		w.lost++
		require.Less(w.t, w.lost, 1000)
	}
}

// claim claims what is due, and returns the ids with their tokens.
func (w *crasher) claim() map[string]int64 {
	v, err := w.send(claimScript, "s:crasher", cmp.Or(w.n, 100), cmp.Or(w.lease, time.Hour).Microseconds(), 3, 0, 0).Slice()
	require.NoError(w.t, err)
	out := make(map[string]int64)
	for i, id := range v[5].([]any) {
		if v[7].([]any)[i] != nil {
			out[id.(string)] = v[4].(int64) + int64(i)
		}
	}
	return out
}

func (w *crasher) report(op, id string, token int64, when string) {
	w.send(finishScript, "s:crasher.f", op, id, token, when, 1, "text")
}

// finish reports on all that it claims.
func (w *crasher) finish(op string) {
	for id, token := range w.claim() {
		w.report(op, id, token, "")
	}
}

// TestOnce_EveryReplyLost has each method that changes something lose each reply
// that it gets, one after the other and several in a row, and something else happen
// to the task between the command and its copy.
func TestOnce_EveryReplyLost(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t)
	direct := s.Client()
	defer direct.Close()
	tomorrow := At(time.Now().Add(24 * time.Hour).Truncate(time.Second))
	later := At(time.Now().Add(48 * time.Hour).Truncate(time.Second))
	past := At(time.Unix(1_700_000_000, 0))
	schedule := func(c *Client, key string, w When, opts ...ScheduleOption) (Outcome, error) {
		return c.Schedule(ctx, Task{Key: key, Handler: "h", Body: []byte("body")}, w, opts...)
	}
	must := func(t *testing.T, c *Client, key string, w When) {
		_, err := schedule(c, key, w)
		require.NoError(t, err)
	}
	one := func(out Outcome, err error) ([]Outcome, error) { return []Outcome{out}, err }
	all := func(t *testing.T, c *Client) {}
	finish := func(t *testing.T, c *Client) { (&crasher{t: t, c: c}).finish("d") }
	for _, x := range []struct {
		name    string
		prepare func(t *testing.T, c *Client)
		do      func(c *Client) ([]Outcome, error)
		// between happens after the command was carried out, and its reply lost,
		// before the command comes again.
		between func(t *testing.T, c *Client)
		want    Outcome
	}{
		{name: "Schedule", prepare: all, want: Created, between: finish,
			do: func(c *Client) ([]Outcome, error) { return one(schedule(c, "k", past)) }},
		{name: "Schedule/After", prepare: all, want: Created, between: finish,
			do: func(c *Client) ([]Outcome, error) { return one(schedule(c, "k", After(0))) }},
		{name: "Schedule/tomorrow", prepare: all, want: Created,
			do: func(c *Client) ([]Outcome, error) { return one(schedule(c, "k", tomorrow)) }},
		{name: "Schedule/replaces", want: Replaced,
			prepare: func(t *testing.T, c *Client) { must(t, c, "k", tomorrow) },
			do:      func(c *Client) ([]Outcome, error) { return one(schedule(c, "k", later)) }},
		{name: "Schedule/OnlyNew", prepare: all, want: Created,
			do: func(c *Client) ([]Outcome, error) { return one(schedule(c, "k", tomorrow, OnlyNew())) }},
		{name: "Schedule/OnlyEarlier", want: Replaced,
			prepare: func(t *testing.T, c *Client) { must(t, c, "k", later) },
			do:      func(c *Client) ([]Outcome, error) { return one(schedule(c, "k", tomorrow, OnlyEarlier())) }},
		{name: "Schedule/OnlyLater", want: Replaced,
			prepare: func(t *testing.T, c *Client) { must(t, c, "k", tomorrow) },
			do:      func(c *Client) ([]Outcome, error) { return one(schedule(c, "k", later, OnlyLater())) }},
		{name: "Schedule/follows", want: Following,
			prepare: func(t *testing.T, c *Client) { must(t, c, "k", past); (&crasher{t: t, c: c}).claim() },
			do:      func(c *Client) ([]Outcome, error) { return one(schedule(c, "k", tomorrow)) }},
		{name: "ScheduleBatch", prepare: all, want: Created,
			do: func(c *Client) ([]Outcome, error) {
				var items []Item
				for i := range 600 { // three scripts
					items = append(items, Item{Task{Key: fmt.Sprint(i), Handler: "h"}, past})
				}
				return c.ScheduleBatch(ctx, items)
			}},
		{name: "Cancel", want: Removed,
			prepare: func(t *testing.T, c *Client) { must(t, c, "k", tomorrow) },
			between: func(t *testing.T, c *Client) { must(t, c, "k", later) },
			do:      func(c *Client) ([]Outcome, error) { return one(c.Cancel(ctx, "k")) }},
		{name: "Cancel/running", want: Stopping,
			prepare: func(t *testing.T, c *Client) { must(t, c, "k", past); (&crasher{t: t, c: c}).claim() },
			do:      func(c *Client) ([]Outcome, error) { return one(c.Cancel(ctx, "k")) }},
		{name: "CancelBatch", want: Removed,
			prepare: func(t *testing.T, c *Client) { must(t, c, "a", tomorrow); must(t, c, "b", tomorrow) },
			do:      func(c *Client) ([]Outcome, error) { return c.CancelBatch(ctx, []string{"a", "b"}) }},
		{name: "Reschedule", want: Moved,
			prepare: func(t *testing.T, c *Client) { must(t, c, "k", tomorrow) },
			between: func(t *testing.T, c *Client) {
				_, err := c.Cancel(ctx, "k")
				require.NoError(t, err)
			},
			do: func(c *Client) ([]Outcome, error) { return one(c.Reschedule(ctx, "k", later)) }},
		{name: "Requeue", want: Moved,
			prepare: func(t *testing.T, c *Client) { must(t, c, "k", past); (&crasher{t: t, c: c}).finish("x") },
			between: finish,
			do:      func(c *Client) ([]Outcome, error) { return one(c.Requeue(ctx, "k", past)) }},
		{name: "Purge", want: Removed,
			prepare: func(t *testing.T, c *Client) { must(t, c, "k", past); (&crasher{t: t, c: c}).finish("x") },
			do:      func(c *Client) ([]Outcome, error) { return one(c.Purge(ctx, "k")) }},
		{name: "Pause", prepare: all, want: 1,
			do: func(c *Client) ([]Outcome, error) { return []Outcome{1}, c.Pause(ctx) }},
		{name: "Resume", prepare: func(t *testing.T, c *Client) { require.NoError(t, c.Pause(ctx)) }, want: 1,
			do: func(c *Client) ([]Outcome, error) { return []Outcome{1}, c.Resume(ctx) }},
		{name: "Schedule/Replicated", prepare: all, want: Created, between: finish,
			do: func(c *Client) ([]Outcome, error) {
				return one(schedule(c, "k", past, Replicated(1, time.Millisecond)))
			}},
	} {
		t.Run(x.name, func(t *testing.T) {
			lost, unknown := 0, 0
			for _, row := range []int{1, 2, 5} { // replies lost one after the other
				for first := 0; ; first++ {
					name := WithName(fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(x.name, "/", "-"), row, first))
					plain := New(direct, name, WithShards(1), silent)
					x.prepare(t, plain)
					var c *Client
					replies, cuts, happened := 0, 0, false
					p := redistest.NewProxy(t, s.Addr, func() bool {
						replies++
						if replies <= first || cuts == row {
							return false
						}
						cuts++
						if x.between != nil && !happened && carriedOut(t, direct, c) {
							happened = true
							x.between(t, plain)
						}
						return true
					})
					r := redis.NewClient(&redis.Options{Addr: p.Addr, MinRetryBackoff: -1})
					c = New(r, name, WithShards(1), silent)
					out, err := x.do(c)
					for err != nil && !errors.Is(err, ErrNotReplicated) {
						var u *UnknownError
						if errors.As(err, &u) {
							unknown++
							out, err = u.Again(ctx)
							continue
						}
						require.ErrorContains(t, err, "EOF")
						require.False(t, carriedOut(t, direct, c), "it said that it was not carried out")
						out, err = x.do(c)
					}
					r.Close()
					for _, o := range out {
						require.Equal(t, x.want, o, "reply %d, %d lost", first, cuts)
					}
					lost += cuts
					// The same without a fault.
					same := New(direct, WithName("same-"+c.config.name), WithShards(1), silent)
					x.prepare(t, same)
					if _, err = x.do(same); !errors.Is(err, ErrNotReplicated) {
						require.NoError(t, err)
					}
					if happened {
						x.between(t, same)
					}
					want, got := dump(t, same), dump(t, plain)
					if x.name == "Schedule/After" && !happened {
						// By when it was carried out.
						require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
					} else {
						require.Equal(t, want, got)
					}
					if cuts == 0 {
						break
					}
				}
			}
			require.NotZero(t, lost)
			t.Logf("%d replies lost, %d times unknown", lost, unknown)
			require.NotZero(t, unknown)
		})
	}
}

// carriedOut reports whether a shard has carried out a command of a client.
func carriedOut(t *testing.T, r *redis.Client, c *Client) bool {
	t.Helper()
	fields, err := r.HKeys(context.Background(), c.shards[0].keys[keyMeta]).Result()
	require.NoError(t, err)
	return slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "s:"+c.lanes.client) })
}

// TestOnce_RandomProgram runs random commands, of which many lose their replies,
// beside a map.
func TestOnce_RandomProgram(t *testing.T) {
	ctx := context.Background()
	steps := 1500
	if testing.Short() {
		steps = 300
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TICKLESS_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("TICKLESS_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	s := redistest.Start(t)
	var lost atomic.Int64
	chance := rand.New(rand.NewPCG(seed, 2))
	p := redistest.NewProxy(t, s.Addr, func() bool {
		if chance.IntN(3) != 0 {
			return false
		}
		lost.Add(1)
		return true
	})
	r := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: 1, MinRetryBackoff: -1})
	defer r.Close()
	direct := s.Client()
	defer direct.Close()
	c, plain := New(r, WithShards(2), silent), New(direct, WithShards(2), silent)

	known := func(out []Outcome, err error) []Outcome {
		for i := 0; err != nil; i++ {
			var u *UnknownError
			if !errors.As(err, &u) {
				// It was not sent: the client did not get so far.
				require.Less(t, i, 100)
				require.NotErrorIs(t, err, ErrUnknown)
				return nil
			}
			out, err = u.Again(ctx)
		}
		return out
	}
	model := make(map[string]int64) // when each is due
	base := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	skipped := 0
	for range steps {
		n := 1 + rng.IntN(3)
		keys, dues, items := make([]string, n), make([]int64, n), make([]Item, n)
		for i, k := range rng.Perm(8)[:n] {
			at := base.Add(time.Duration(rng.IntN(1000)) * time.Second)
			keys[i], dues[i] = fmt.Sprint("k", k), at.UnixMicro()
			items[i] = Item{Task{Key: keys[i], Handler: "h"}, At(at)}
		}
		var out []Outcome
		want := make([]Outcome, n)
		switch op := rng.IntN(6); op {
		case 0, 1, 2:
			opts := [][]ScheduleOption{nil, {OnlyNew()}, {OnlyEarlier()}, {OnlyLater()}}[rng.IntN(4)]
			if n == 1 {
				one, err := c.Schedule(ctx, items[0].Task, items[0].When, opts...)
				out = known([]Outcome{one}, err)
			} else {
				out = known(c.ScheduleBatch(ctx, items, opts...))
			}
			if out == nil {
				skipped++
				continue
			}
			config, err := newScheduleConfig("", opts)
			require.NoError(t, err)
			mode := config.mode
			for i, k := range keys {
				there, ok := model[k]
				switch {
				case ok && (mode == modeNew || mode == modeEarlier && dues[i] >= there || mode == modeLater && dues[i] <= there):
					want[i] = Kept
					continue
				case ok:
					want[i] = Replaced
				default:
					want[i] = Created
				}
				model[k] = dues[i]
			}
		case 3, 4:
			if out = known(c.CancelBatch(ctx, keys)); out == nil {
				skipped++
				continue
			}
			for i, k := range keys {
				want[i] = Absent
				if _, ok := model[k]; ok {
					want[i] = Removed
					delete(model, k)
				}
			}
		case 5:
			one, err := c.Reschedule(ctx, keys[0], items[0].When)
			if out = known([]Outcome{one}, err); out == nil {
				skipped++
				continue
			}
			want = []Outcome{Absent}
			if _, ok := model[keys[0]]; ok {
				want, model[keys[0]] = []Outcome{Moved}, dues[0]
			}
		}
		require.Equal(t, want, out)
	}
	there := make(map[string]int64)
	for k := range 8 {
		key := fmt.Sprint("k", k)
		info, err := plain.Get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		require.NoError(t, err)
		there[key] = info.At.UnixMicro()
		require.Equal(t, info.At, info.Due)
	}
	require.Equal(t, model, there)
	require.Less(t, skipped, steps/10)
	t.Logf("%d steps, %d replies lost, %d commands not sent", steps, lost.Load(), skipped)
	require.Greater(t, int(lost.Load()), steps/10)
}

// TestOnce_WorkerLosesReplies has a worker lose many of its replies: every attempt is
// made once all the same, and none is refused or comes back by its lease.
func TestOnce_WorkerLosesReplies(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t)
	var lost atomic.Int64
	p := redistest.NewProxy(t, s.Addr, func() bool {
		if rand.IntN(5) != 0 {
			return false
		}
		lost.Add(1)
		return true
	})
	r := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: 1, MinRetryBackoff: -1})
	defer r.Close()
	direct := s.Client()
	defer direct.Close()
	plain := New(direct, WithShards(4), silent)
	const n = 400
	var mu sync.Mutex
	attempts := make(map[string]int)
	w := NewWorker(New(r, WithShards(4), silent), WithConcurrency(20), WithLease(time.Hour))
	w.Handle("h", func(_ context.Context, d Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		attempts[d.Key]++
		if d.Attempt == 1 && len(d.Key)%2 == 0 {
			return errors.New("once more")
		}
		return nil
	}, WithBackoff(0, 0))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var items []Item
	want := make(map[string]int)
	for i := range n {
		key := fmt.Sprint("k", i)
		want[key] = 1 + (len(key)+1)%2
		items = append(items, Item{Task{Key: key, Handler: "h"}, After(rand.N(time.Second))})
	}
	_, err := plain.ScheduleBatch(ctx, items)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		st, err := plain.Stats(ctx)
		return err == nil && st.Pending+st.Running == 0
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, w.Shutdown(ctx))
	require.NoError(t, <-done)
	st, err := plain.Stats(ctx)
	require.NoError(t, err)
	require.Zero(t, st.Crashed)
	require.Zero(t, st.Refused)
	require.Zero(t, w.Stats().Lost)
	mu.Lock()
	defer mu.Unlock()
	require.True(t, maps.Equal(want, attempts), "each attempt once: %v", attempts)
	require.Greater(t, int(lost.Load()), 20)
	t.Logf("%d replies lost", lost.Load())
}
