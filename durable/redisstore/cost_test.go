package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

// fill schedules n tasks.
func fill(t *testing.T, c *client, n int, when durable.When, body []byte) {
	t.Helper()
	var items []durable.Item
	for i := range n {
		items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprintf("%08d", i), Handler: "h", Body: body}, When: when})
	}
	_, err := c.ScheduleBatch(context.Background(), items)
	require.NoError(t, err)
}

// calls returns how often a server has executed each command.
func calls(t *testing.T, rdb *redis.Client) map[string]int {
	t.Helper()
	n := make(map[string]int)
	for line := range strings.Lines(rdb.Info(context.Background(), "commandstats").Val()) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if count, _, _ := strings.Cut(rest, ","); ok && name != "info" {
			var err error
			n[name], err = strconv.Atoi(count)
			require.NoError(t, err)
		}
	}
	return n
}

// A call of Change or Do runs one script. The number of its Redis commands does not grow
// with the number of tasks.
func TestCommands_NumberDoesNotGrow(t *testing.T) {
	server := redistest.Start(t)
	ctx := context.Background()
	past := durable.At(time.Unix(1_700_000_000, 0))
	for _, x := range []struct {
		name  string
		due   bool
		limit int
		n     int // of a claim
		spare int
		rooms []store.Room
	}{
		{name: "not due", n: 1},
		{name: "due", due: true, n: 1},
		{name: "a limit", due: true, limit: 1, n: 10},
		{name: "rooms", due: true, n: 10, rooms: []store.Room{{Handler: 0, Most: 1}, {Handler: 1, Most: 1}}},
		{name: "spare", due: true, n: 10, spare: 10},
		{name: "busy", due: true, n: 10, spare: 9, rooms: []store.Room{{Handler: 0, Most: 10, Busy: true}}},
	} {
		var before map[string]int
		for _, n := range []int{300, 10_000} {
			rdb := server.Client()
			require.NoError(t, rdb.FlushAll(ctx).Err())
			c := newClient(rdb, WithShards(1))
			when := durable.After(time.Hour)
			if x.due {
				when = past
			}
			fill(t, c, n, when, nil)
			if x.limit > 0 {
				require.NoError(t, c.SetLimit(ctx, "h", durable.Limit{Concurrency: x.limit}))
			}
			w := &crasher{t: t, c: c, n: x.n, spare: x.spare, rooms: x.rooms}
			const times = 20
			did := 0
			step := func(i int) {
				extra := durable.Task{Key: fmt.Sprint("extra", i), Handler: "h"}
				for _, f := range []func() (durable.Outcome, error){
					func() (durable.Outcome, error) { return c.Schedule(ctx, extra, durable.After(time.Minute)) },
					func() (durable.Outcome, error) { return c.Reschedule(ctx, extra.Key, durable.After(2*time.Minute)) },
					func() (durable.Outcome, error) { return c.Cancel(ctx, extra.Key) },
					func() (durable.Outcome, error) { return c.Schedule(ctx, extra, past) },
				} {
					_, err := f()
					require.NoError(t, err)
					did++
				}
				got := w.claim()
				require.Len(t, got, 1)
				did++
				for id, token := range got {
					w.report(store.Done, id, token, store.When{})
					did++
				}
			}
			step(0) // includes work that is done once
			begin := calls(t, rdb)
			did = 0
			for i := range times {
				step(1 + i)
			}
			used := calls(t, rdb)
			for name := range used {
				if used[name] -= begin[name]; used[name] == 0 {
					delete(used, name)
				}
			}
			t.Logf("%s, %d tasks: %v", x.name, n, used)
			require.Equal(t, did, used["evalsha"], "number of scripts, each in a round trip")
			for _, name := range []string{"keys", "scan", "hscan", "zscan", "hkeys", "hvals", "smembers", "sort"} {
				require.Zero(t, used[name], name)
			}
			if before == nil {
				before = used
			}
			require.Equal(t, before, used, x.name)
			require.NoError(t, c.s.Close())
			require.NoError(t, rdb.Close())
		}
	}
}

// A task takes the memory that docs/operating.md states. The test allows 15 percent,
// because Redis doubles its tables.
func TestMemory_OfATask(t *testing.T) {
	const n, body = 20_000, 205
	rdb := redistest.Start(t).Client()
	defer rdb.Close()
	c := newClient(rdb, WithShards(1))
	defer c.s.Close()
	used := func() float64 {
		for line := range strings.Lines(rdb.Info(context.Background(), "memory").Val()) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
				b, err := strconv.Atoi(v)
				require.NoError(t, err)
				return float64(b)
			}
		}
		t.Fatal("INFO has no used_memory")
		return 0
	}
	before := used()
	// each returns the growth of memory since the last call, in bytes for each task.
	each := func(what string) float64 {
		now := used()
		d := (now - before) / n
		t.Logf("%s: %.0f bytes more for each", what, d)
		before = now
		return d
	}
	fill(t, c, n, durable.At(time.Unix(1_700_000_000, 0)), make([]byte, body))
	require.InEpsilon(t, 205+2*8+1+body, each("pending"), 0.15)

	w := &crasher{t: t, c: c}
	held := make(map[string]int64, n)
	for len(held) < n {
		for id, token := range w.claim() {
			held[id] = token
		}
	}
	running := each("running")
	require.InEpsilon(t, 125, running, 0.15)

	var r store.Round
	text := strings.Repeat("x", 100)
	for id, token := range held {
		r.Reports = append(r.Reports, store.Report{Lease: store.Lease{ID: id, Token: token}, End: store.Failed, Due: 1, Text: text})
		if len(r.Reports) == 100 {
			w.do(r)
			r.Reports = nil
		}
	}
	require.InEpsilon(t, 190+len(text), running+each("dead"), 0.15)
}

// A claim stops at about 768 KB, and reports that more tasks are due.
func TestClaim_BoundedByBytes(t *testing.T) {
	rdb := redistest.Start(t).Client()
	defer rdb.Close()
	for _, size := range []int{200, 8_000, 60_000, 250_000} {
		s := New(rdb, WithShards(1), WithName(fmt.Sprint("bodies-of-", size)), silent)
		c := &client{durable.New(s, durable.WithLogger(quiet), durable.WithMaxTask(256<<10)), s}
		fill(t, c, 100, durable.After(0), make([]byte, size))
		w := &crasher{t: t, c: c}
		for got := 0; got < 100; {
			a := w.do(w.claims())
			require.NotEmpty(t, a.Tasks)
			require.LessOrEqual(t, len(a.Tasks)*size, 2<<20)
			if got += len(a.Tasks); got < 100 {
				require.Greater(t, len(a.Tasks)*size, 512<<10)
				require.Zero(t, a.Next)
			}
		}
		require.NoError(t, s.Close())
	}
}

// A claim sends the names of a worker's handlers once, not each time.
func TestClaim_BytesDoNotGrowWithHandlers(t *testing.T) {
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	defer rdb.Close()
	c := newClient(rdb, WithShards(1))
	defer c.s.Close()
	// received returns how many bytes the server has received.
	received := func() (n int) {
		for line := range strings.Lines(rdb.Info(ctx, "stats").Val()) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "total_net_input_bytes:"); ok {
				n, _ = strconv.Atoi(v)
			}
		}
		return n
	}
	perClaim := map[int]int{}
	for _, n := range []int{2, 2000} {
		w := &crasher{t: t, c: c}
		for i := range n {
			w.handlers = append(w.handlers, fmt.Sprint("handler-", i))
		}
		w.claim() // sends the names
		before := received()
		overhead := received() - before
		const claims = 20
		before = received()
		for range claims {
			w.claim()
		}
		perClaim[n] = (received() - before - overhead) / claims
	}
	t.Logf("bytes of a claim by handlers: %v", perClaim)
	require.Positive(t, perClaim[2])
	require.LessOrEqual(t, perClaim[2000], perClaim[2]+20)
}

// BenchmarkServerTime runs due tasks with records of 1 KB. It reports the longest script in
// milliseconds, and the server's processor time for a task.
func BenchmarkServerTime(b *testing.B) {
	ctx := context.Background()
	for _, x := range []struct{ handlers, due int }{{1, 20_000}, {200, 20_000}, {2000, 20_000}, {200, 200_000}} {
		b.Run(fmt.Sprintf("handlers=%d/due=%d", x.handlers, x.due), func(b *testing.B) {
			for b.Loop() {
				rdb := redistest.Start(b, "--slowlog-log-slower-than", "1000", "--slowlog-max-len", "1000").Client()
				c := newClient(rdb)
				var items []durable.Item
				for i := range x.due {
					items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprintf("%08d", i), Handler: fmt.Sprint("h", i%x.handlers), Body: make([]byte, 1000)}, When: durable.After(0)})
				}
				_, err := c.ScheduleBatch(ctx, items)
				require.NoError(b, err)
				used := serverTime(b, rdb)
				var ran atomic.Int64
				const n = 20_000
				all := make(chan struct{})
				w := durable.NewWorker(c.Client)
				for i := range x.handlers {
					w.Handle(fmt.Sprint("h", i), func(context.Context, durable.Delivery) error {
						if ran.Add(1) == n {
							close(all)
						}
						return nil
					})
				}
				wctx, cancel := context.WithCancel(ctx)
				ended := make(chan error, 1)
				go func() { ended <- w.Run(wctx) }()
				<-all
				cancel()
				require.NoError(b, <-ended)
				b.ReportMetric((serverTime(b, rdb)-used)*1e6/float64(ran.Load()), "server-us/task")
				longest := time.Duration(0)
				for _, s := range rdb.SlowLogGet(ctx, 1000).Val() {
					longest = max(longest, s.Duration)
				}
				b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
				require.NoError(b, c.s.Close())
				require.NoError(b, rdb.Close())
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// serverTime returns the processor time that a server has used, in seconds.
func serverTime(tb testing.TB, rdb *redis.Client) (seconds float64) {
	for line := range strings.Lines(rdb.Info(context.Background(), "cpu").Val()) {
		name, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			x, err := strconv.ParseFloat(v, 64)
			require.NoError(tb, err)
			seconds += x
		}
	}
	return seconds
}
