package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

// A loser drops replies to scripts that the server has carried out.
type loser struct {
	mu   sync.Mutex
	lose func() bool // is asked about each, one call at a time
}

func (l *loser) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *loser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *loser) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.lose() {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return err
	}
}

// TestOnce_EveryReplyLost drops one or several replies to each method that changes
// something. Before the command is repeated, something else happens to the task.
func TestOnce_EveryReplyLost(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t)
	direct := s.Client()
	defer direct.Close()
	tomorrow := durable.At(time.Now().Add(24 * time.Hour).Truncate(time.Second))
	later := durable.At(time.Now().Add(48 * time.Hour).Truncate(time.Second))
	past := durable.At(time.Unix(1_700_000_000, 0))
	schedule := func(c *client, key string, w durable.When, opts ...durable.ScheduleOption) (durable.Outcome, error) {
		return c.Schedule(ctx, durable.Task{Key: key, Handler: "h", Body: []byte("body")}, w, opts...)
	}
	must := func(t *testing.T, c *client, key string, w durable.When) {
		_, err := schedule(c, key, w)
		require.NoError(t, err)
	}
	one := func(out durable.Outcome, err error) ([]durable.Outcome, error) { return []durable.Outcome{out}, err }
	all := func(t *testing.T, c *client) {}
	finish := func(t *testing.T, c *client) { (&crasher{t: t, c: c}).finish(store.Done) }
	for _, x := range []struct {
		name    string
		prepare func(t *testing.T, c *client)
		do      func(c *client) ([]durable.Outcome, error)
		// between runs after the reply was dropped, and before the command is repeated.
		between func(t *testing.T, c *client)
		want    durable.Outcome
	}{
		{name: "Schedule", prepare: all, want: durable.Created, between: finish,
			do: func(c *client) ([]durable.Outcome, error) { return one(schedule(c, "k", past)) }},
		{name: "Schedule/After", prepare: all, want: durable.Created, between: finish,
			do: func(c *client) ([]durable.Outcome, error) { return one(schedule(c, "k", durable.After(0))) }},
		{name: "Schedule/tomorrow", prepare: all, want: durable.Created,
			do: func(c *client) ([]durable.Outcome, error) { return one(schedule(c, "k", tomorrow)) }},
		{name: "Schedule/replaces", want: durable.Replaced,
			prepare: func(t *testing.T, c *client) { must(t, c, "k", tomorrow) },
			do:      func(c *client) ([]durable.Outcome, error) { return one(schedule(c, "k", later)) }},
		{name: "Schedule/OnlyNew", prepare: all, want: durable.Created,
			do: func(c *client) ([]durable.Outcome, error) { return one(schedule(c, "k", tomorrow, durable.OnlyNew())) }},
		{name: "Schedule/OnlyEarlier", want: durable.Replaced,
			prepare: func(t *testing.T, c *client) { must(t, c, "k", later) },
			do: func(c *client) ([]durable.Outcome, error) {
				return one(schedule(c, "k", tomorrow, durable.OnlyEarlier()))
			}},
		{name: "Schedule/OnlyLater", want: durable.Replaced,
			prepare: func(t *testing.T, c *client) { must(t, c, "k", tomorrow) },
			do:      func(c *client) ([]durable.Outcome, error) { return one(schedule(c, "k", later, durable.OnlyLater())) }},
		{name: "Schedule/follows", want: durable.Following,
			prepare: func(t *testing.T, c *client) { must(t, c, "k", past); (&crasher{t: t, c: c}).claim() },
			do:      func(c *client) ([]durable.Outcome, error) { return one(schedule(c, "k", tomorrow)) }},
		{name: "ScheduleBatch", prepare: all, want: durable.Created,
			do: func(c *client) ([]durable.Outcome, error) {
				var items []durable.Item
				for i := range 600 { // three scripts
					items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprint(i), Handler: "h"}, When: past})
				}
				return c.ScheduleBatch(ctx, items)
			}},
		{name: "Cancel", want: durable.Removed,
			prepare: func(t *testing.T, c *client) { must(t, c, "k", tomorrow) },
			between: func(t *testing.T, c *client) { must(t, c, "k", later) },
			do:      func(c *client) ([]durable.Outcome, error) { return one(c.Cancel(ctx, "k")) }},
		{name: "Cancel/running", want: durable.Stopping,
			prepare: func(t *testing.T, c *client) { must(t, c, "k", past); (&crasher{t: t, c: c}).claim() },
			do:      func(c *client) ([]durable.Outcome, error) { return one(c.Cancel(ctx, "k")) }},
		{name: "CancelBatch", want: durable.Removed,
			prepare: func(t *testing.T, c *client) { must(t, c, "a", tomorrow); must(t, c, "b", tomorrow) },
			do:      func(c *client) ([]durable.Outcome, error) { return c.CancelBatch(ctx, []string{"a", "b"}) }},
		{name: "Reschedule", want: durable.Moved,
			prepare: func(t *testing.T, c *client) { must(t, c, "k", tomorrow) },
			between: func(t *testing.T, c *client) {
				_, err := c.Cancel(ctx, "k")
				require.NoError(t, err)
			},
			do: func(c *client) ([]durable.Outcome, error) { return one(c.Reschedule(ctx, "k", later)) }},
		{name: "Requeue", want: durable.Moved,
			prepare: func(t *testing.T, c *client) { must(t, c, "k", past); (&crasher{t: t, c: c}).finish(store.Failed) },
			between: finish,
			do:      func(c *client) ([]durable.Outcome, error) { return one(c.Requeue(ctx, "k", past)) }},
		{name: "Purge", want: durable.Removed,
			prepare: func(t *testing.T, c *client) { must(t, c, "k", past); (&crasher{t: t, c: c}).finish(store.Failed) },
			do:      func(c *client) ([]durable.Outcome, error) { return one(c.Purge(ctx, "k")) }},
		{name: "Pause", prepare: all, want: durable.Unknown,
			do: func(c *client) ([]durable.Outcome, error) { return []durable.Outcome{durable.Unknown}, c.Pause(ctx) }},
		{name: "Resume", prepare: func(t *testing.T, c *client) { require.NoError(t, c.Pause(ctx)) }, want: durable.Unknown,
			do: func(c *client) ([]durable.Outcome, error) { return []durable.Outcome{durable.Unknown}, c.Resume(ctx) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			lost, unknown := 0, 0
			for _, row := range []int{1, 2, 5} { // replies lost one after the other
				for first := 0; ; first++ {
					name := WithName(fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(x.name, "/", "-"), row, first))
					plain := newClient(direct, name, WithShards(1))
					_, err := plain.Cancel(ctx, "none")
					require.NoError(t, err)
					own := senders(t, direct, plain)
					require.Len(t, own, 1)
					x.prepare(t, plain)
					var c *client
					replies, cuts, happened := 0, 0, false
					r := s.Client()
					r.AddHook(&loser{lose: func() bool {
						if c == nil || !c.s.schemaChecked.Load() {
							return false // no part of the command was sent
						}
						replies++
						if replies <= first || cuts == row {
							return false
						}
						cuts++
						if x.between != nil && !happened && carriedOut(t, direct, c, own[0]) {
							happened = true
							x.between(t, plain)
						}
						return true
					}})
					c = newClient(r, name, WithShards(1))
					var out []durable.Outcome
					out, err = x.do(c)
					for err != nil {
						var u *durable.UnknownError
						if errors.As(err, &u) {
							unknown++
							out, err = u.Again(ctx)
							continue
						}
						require.ErrorContains(t, err, "EOF")
						require.False(t, carriedOut(t, direct, c, own[0]), "the error said that the command was not carried out, but it was")
						out, err = x.do(c)
					}
					r.Close()
					for _, o := range out {
						require.Equal(t, x.want, o, "outcome, with %d replies dropped from reply %d on", cuts, first)
					}
					lost += cuts
					// Compare with the same calls without a fault.
					same := newClient(direct, WithName("same-"+c.s.config.name), WithShards(1))
					_, err = same.Cancel(ctx, "none")
					require.NoError(t, err)
					x.prepare(t, same)
					_, err = x.do(same)
					require.NoError(t, err)
					if happened {
						x.between(t, same)
					}
					want, got := dump(t, same), dump(t, plain)
					if x.name == "Schedule/After" && !happened {
						// The times differ, because they depend on when the command was
						// carried out.
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

// senders returns the fields of meta for the senders that a shard remembers.
func senders(t *testing.T, r *redis.Client, c *client) []string {
	t.Helper()
	fields, err := r.HKeys(context.Background(), c.s.shards[0].keys[keyMeta]).Result()
	require.NoError(t, err)
	return slices.DeleteFunc(fields, func(f string) bool { return !strings.HasPrefix(f, "s:") || strings.HasPrefix(f, "s:crasher") })
}

// carriedOut reports whether a shard has carried out a command of another Client than
// this sender's.
func carriedOut(t *testing.T, r *redis.Client, c *client, sender string) bool {
	t.Helper()
	name, _, _ := strings.Cut(sender, ".")
	return slices.ContainsFunc(senders(t, r, c), func(f string) bool { return !strings.HasPrefix(f, name+".") })
}

// TestOnce_RandomProgram runs random commands, drops many of their replies, and compares
// the results with a map.
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
	r := s.Client()
	defer r.Close()
	r.AddHook(&loser{lose: func() bool {
		if chance.IntN(3) != 0 {
			return false
		}
		lost.Add(1)
		return true
	}})
	direct := s.Client()
	defer direct.Close()
	c, plain := newClient(r, WithShards(2)), newClient(direct, WithShards(2))

	// Without this, the first command of one of the shards may end before it is sent.
	for checked := false; !checked; {
		_, err := c.Stats(ctx)
		checked = err == nil
	}

	known := func(out []durable.Outcome, err error) []durable.Outcome {
		for i := 0; err != nil; i++ {
			var u *durable.UnknownError
			if !errors.As(err, &u) {
				// After an earlier failure the client has not sent this command.
				require.Less(t, i, 100)
				require.NotErrorIs(t, err, durable.ErrUnknown)
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
		keys, dues, items := make([]string, n), make([]int64, n), make([]durable.Item, n)
		for i, k := range rng.Perm(8)[:n] {
			at := base.Add(time.Duration(rng.IntN(1000)) * time.Second)
			keys[i], dues[i] = fmt.Sprint("k", k), at.UnixMicro()
			items[i] = durable.Item{Task: durable.Task{Key: keys[i], Handler: "h"}, When: durable.At(at)}
		}
		var out []durable.Outcome
		want := make([]durable.Outcome, n)
		switch op := rng.IntN(6); op {
		case 0, 1, 2:
			mode := rng.IntN(4)
			opts := [][]durable.ScheduleOption{nil, {durable.OnlyNew()}, {durable.OnlyEarlier()}, {durable.OnlyLater()}}[mode]
			if n == 1 {
				one, err := c.Schedule(ctx, items[0].Task, items[0].When, opts...)
				out = known([]durable.Outcome{one}, err)
			} else {
				out = known(c.ScheduleBatch(ctx, items, opts...))
			}
			if out == nil {
				skipped++
				continue
			}
			for i, k := range keys {
				there, ok := model[k]
				switch {
				case ok && (mode == 1 || mode == 2 && dues[i] >= there || mode == 3 && dues[i] <= there):
					want[i] = durable.Kept
					continue
				case ok:
					want[i] = durable.Replaced
				default:
					want[i] = durable.Created
				}
				model[k] = dues[i]
			}
		case 3, 4:
			if out = known(c.CancelBatch(ctx, keys)); out == nil {
				skipped++
				continue
			}
			for i, k := range keys {
				want[i] = durable.Absent
				if _, ok := model[k]; ok {
					want[i] = durable.Removed
					delete(model, k)
				}
			}
		case 5:
			one, err := c.Reschedule(ctx, keys[0], items[0].When)
			if out = known([]durable.Outcome{one}, err); out == nil {
				skipped++
				continue
			}
			want = []durable.Outcome{durable.Absent}
			if _, ok := model[keys[0]]; ok {
				want, model[keys[0]] = []durable.Outcome{durable.Moved}, dues[0]
			}
		}
		require.Equal(t, want, out)
	}
	there := make(map[string]int64)
	for k := range 8 {
		key := fmt.Sprint("k", k)
		info, err := plain.Get(ctx, key)
		if errors.Is(err, durable.ErrNotFound) {
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

// TestOnce_WorkerLosesReplies drops many replies to a worker. Each attempt must still run
// once, and no lease may expire.
func TestOnce_WorkerLosesReplies(t *testing.T) {
	t.Parallel() // it mostly waits
	ctx := context.Background()
	s := redistest.Start(t)
	var lost atomic.Int64
	r := s.Client()
	defer r.Close()
	r.AddHook(&loser{lose: func() bool {
		if rand.IntN(5) != 0 {
			return false
		}
		lost.Add(1)
		return true
	}})
	direct := s.Client()
	defer direct.Close()
	plain := newClient(direct, WithShards(4))
	const n = 400
	var mu sync.Mutex
	attempts := make(map[string]int)
	w := durable.NewWorker(newClient(r, WithShards(4)).Client, durable.WithConcurrency(20), durable.WithLease(time.Hour))
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		attempts[d.Key]++
		if d.Attempt == 1 && len(d.Key)%2 == 0 {
			return errors.New("once more")
		}
		return nil
	}, durable.WithBackoff(0, 0))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	want := make(map[string]int)
	// A slow worker sends few commands, so continue until enough replies were dropped.
	for lost.Load() <= 20 {
		var items []durable.Item
		for range n {
			key := fmt.Sprint("k", len(want))
			want[key] = 1 + (len(key)+1)%2
			items = append(items, durable.Item{Task: durable.Task{Key: key, Handler: "h"}, When: durable.After(rand.N(time.Second))})
		}
		_, err := plain.ScheduleBatch(ctx, items)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			st, err := plain.Stats(ctx)
			return err == nil && st.Pending+st.Running == 0
		}, time.Minute, 20*time.Millisecond)
	}
	require.NoError(t, w.Shutdown(ctx))
	require.NoError(t, <-done)
	st, err := plain.Stats(ctx)
	require.NoError(t, err)
	require.Zero(t, st.Crashed)
	require.Zero(t, st.Refused)
	require.Zero(t, w.Stats().Lost)
	mu.Lock()
	defer mu.Unlock()
	require.True(t, maps.Equal(want, attempts), "each attempt must run once, got %v", attempts)
	t.Logf("%d replies lost", lost.Load())
}
