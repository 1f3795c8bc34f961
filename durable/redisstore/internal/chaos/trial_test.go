//go:build unix

package chaos

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
)

// bodyMark is in the body of every task. A server sends it only in the answer to a claim.
const bodyMark = "!mark!"

// keyPrefix is the beginning of every task's key.
const keyPrefix = "chaos-task-"

// A ledger is a server to which handlers report their deliveries.
type ledger struct {
	*httptest.Server
	mu    sync.Mutex
	seen  map[string]deliveries
	again []redelivery // every delivery of a task except its first
	early int
	late  []time.Duration
	since time.Time // tasks due before this do not count as late
	worst time.Duration
	ahead time.Duration // how far the clock of Redis is ahead
	hook  func(key string, pid int)
}

// deliveries are the deliveries of one task: their number, and the time of the last.
type deliveries struct {
	n    int
	last time.Time
}

// A redelivery is a delivery of a task that was delivered before.
type redelivery struct {
	key    string
	before time.Time
}

func newLedger() *ledger {
	l := &ledger{seen: make(map[string]deliveries)}
	l.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		due, _ := strconv.ParseInt(q.Get("due"), 10, 64)
		pid, _ := strconv.Atoi(q.Get("pid"))
		l.note(q.Get("key"), time.UnixMicro(due), pid)
	}))
	return l
}

func (l *ledger) note(key string, due time.Time, pid int) {
	l.mu.Lock()
	at := time.Now()
	late := at.Add(l.ahead).Sub(due)
	if late < 0 {
		l.early++
	}
	v := l.seen[key]
	if v.n > 0 {
		l.again = append(l.again, redelivery{key, v.last})
	}
	l.seen[key] = deliveries{v.n + 1, at}
	l.late = append(l.late, late)
	if !due.Before(l.since) {
		l.worst = max(l.worst, late)
	}
	hook := l.hook
	l.mu.Unlock()
	if hook != nil {
		hook(key, pid)
	}
}

func (l *ledger) count(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[key].n
}

func (l *ledger) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}

func (l *ledger) setHook(f func(key string, pid int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hook = f
}

// A trial is one case: a server under faults, its workers, and the results.
type trial struct {
	*testing.T
	r     redis.UniversalClient
	c     *durable.Client
	l     *ledger
	order order // for worker processes
	begin time.Time

	mu       sync.Mutex
	acked    map[string]bool
	asked    map[string]span // from the call of Schedule to its answer
	failures int             // calls of ScheduleBatch with an error
	// twice contains the tasks that were scheduled again after an unknown outcome. If
	// both calls had an effect, the task may run twice.
	twice map[string]bool

	procs []*proc
	here  []func() // ends workers in this process
	notes []string // what happened, for the log
	dups  int
	lost  []string
	n     numbers // what done has counted
	// torn is true if kills of the server may leave a task in no index: see
	// docs/operating.md. Repair corrects this.
	torn bool
	// kills is how often the server was killed.
	kills int
	// doubtful are periods whose commands a server may have forgotten. Tasks
	// acknowledged in them may be lost, and tasks done in them may run again.
	doubtful []span
	// loose is true if a server may have forgotten commands of any time. The case then
	// accepts duplicates and losses, and logs them.
	loose bool
}

type span struct{ from, to time.Time }

func (s span) overlaps(t span) bool { return !s.to.Before(t.from) && !t.to.Before(s.from) }

// A report may arrive lateReport after its delivery if the server is slow.
const lateReport = time.Second

var quietLog = slog.New(slog.NewTextHandler(io.Discard, nil))

// newClient returns a client whose store and workers do not log.
func newClient(r redis.UniversalClient, opts ...redisstore.Option) *durable.Client {
	opts = append([]redisstore.Option{redisstore.WithLogger(quietLog)}, opts...)
	return durable.New(redisstore.New(r, opts...), durable.WithLogger(quietLog))
}

func newTrial(t *testing.T, r redis.UniversalClient, addrs ...string) *trial {
	t.Helper()
	x := &trial{T: t, r: r, c: newClient(r), l: newLedger(),
		acked: make(map[string]bool), asked: make(map[string]span), begin: time.Now()}
	_, cluster := r.(*redis.ClusterClient)
	x.order = order{Addrs: addrs, Cluster: cluster, Ledger: x.l.URL, Concurrency: 32, Lease: 2 * time.Second}
	t.Cleanup(func() {
		x.stop()
		x.l.CloseClientConnections()
		x.l.Close()
		r.Close()
	})
	return x
}

// schedule schedules n tasks, and repeats this until all are acknowledged, as a careful
// caller does.
func (x *trial) schedule(from, n int, when func(i int) durable.When, does string) {
	x.Helper()
	for i := from; i < from+n; i += 1000 {
		var items []durable.Item
		for j := i; j < min(i+1000, from+n); j++ {
			items = append(items, durable.Item{Task: durable.Task{Key: keyPrefix + strconv.Itoa(j), Handler: "h", Body: []byte(bodyMark + does)}, When: when(j)})
		}
		end := time.Now().Add(2 * time.Minute)
		for len(items) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			begun := time.Now()
			out, err := x.c.ScheduleBatch(ctx, items, durable.OnlyNew())
			answered := time.Now()
			cancel()
			var again []durable.Item
			x.mu.Lock()
			for k, o := range out {
				if o == durable.Unknown || o == durable.Absent {
					again = append(again, items[k])
					if x.twice == nil {
						x.twice = make(map[string]bool)
					}
					x.twice[items[k].Task.Key] = true
				} else {
					x.acked[items[k].Task.Key] = true
					x.asked[items[k].Task.Key] = span{begun, answered}
				}
			}
			if err != nil {
				x.failures++
			}
			x.mu.Unlock()
			if out == nil || time.Now().After(end) {
				x.Error("cannot schedule: ", err)
				return
			}
			if items = again; len(items) > 0 {
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
}

// soon returns a function that returns random times, between 200 ms and 200 ms + d from
// now.
func soon(d time.Duration) func(int) durable.When {
	base := time.Now().Add(200 * time.Millisecond)
	return func(i int) durable.When {
		return durable.At(base.Add(time.Duration(uint64(i) * 0x9e3779b97f4a7c15 % uint64(d))))
	}
}

func now(int) durable.When { return durable.After(0) }

// work runs a worker in this process.
func (x *trial) work(r redis.UniversalClient, h durable.Handler, opts ...durable.WorkerOption) *durable.Worker {
	w := durable.NewWorker(newClient(r, redisstore.WithRecheck(time.Second)), append([]durable.WorkerOption{
		durable.WithLease(5 * time.Second), durable.WithShutdownTimeout(2 * time.Second),
		durable.WithBackoff(10*time.Millisecond, 200*time.Millisecond),
	}, opts...)...)
	if h == nil {
		h = func(_ context.Context, d durable.Delivery) error {
			x.l.note(d.Key, d.Due, 0)
			return nil
		}
	}
	w.Handle("h", h)
	x.run(w)
	return w
}

// run runs a worker until the case ends.
func (x *trial) run(w *durable.Worker) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	x.here = append(x.here, func() {
		cancel()
		if err := <-done; err != nil {
			x.Error("Run of a worker: ", err)
		}
	})
}

func (x *trial) stop() {
	for _, f := range x.here {
		f()
	}
	x.here = nil
	for _, p := range x.procs {
		p.stop()
	}
	x.procs = nil
}

// eventually waits until f returns true, for d at most.
func (x *trial) eventually(d time.Duration, what string, f func() bool) bool {
	x.Helper()
	for end := time.Now().Add(d); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			st, err := x.c.Stats(context.Background())
			x.Errorf("not within %v: %s; %d of %d tasks delivered; stats %+v, %v", d, what, x.l.total(), len(x.acked), st, err)
			return false
		}
	}
	return true
}

// drain waits until no task is pending or running.
func (x *trial) drain(d time.Duration) {
	x.Helper()
	x.eventually(d, "the queue is empty", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		st, err := x.c.Stats(ctx)
		return err == nil && st.Pending+st.Running == 0
	})
}

// done drains the queue, ends the workers, and checks the results.
func (x *trial) done(patience time.Duration) durable.Stats {
	x.Helper()
	x.drain(patience)
	x.stop()
	ctx := context.Background()
	st, err := x.c.Stats(ctx)
	require.NoError(x, err)
	repair, err := x.c.Repair(ctx)
	require.NoError(x, err)
	if x.torn && repair.Requeued > 0 {
		x.note("Repair put %d tasks back into an index", repair.Requeued)
		x.work(x.r, nil)
		x.drain(patience)
		x.stop()
		again, err := x.c.Repair(ctx)
		require.NoError(x, err)
		require.Zero(x, again.Requeued+again.Doubled+again.Orphaned)
	}
	dead := make(map[string]bool)
	for d, err := range x.c.List(ctx, durable.Filter{State: durable.Dead}) {
		require.NoError(x, err)
		dead[d.Task.Key] = true
	}
	x.l.mu.Lock()
	defer x.l.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(x.acked)) {
		if x.l.seen[key].n == 0 && !dead[key] {
			x.lost = append(x.lost, key)
		}
	}
	allowed := int(st.Crashed)
	if x.torn {
		allowed += max(3, x.kills) // one for each kill
	}
	x.dups = len(x.l.again)
	for _, v := range x.l.again {
		// The task was scheduled twice, or its previous report may be lost.
		if x.twice[v.key] || x.inDoubt(span{v.before, v.before.Add(lateReport)}) {
			allowed++
		}
	}
	slices.Sort(x.l.late)
	p := func(q float64) time.Duration {
		if len(x.l.late) == 0 {
			return 0
		}
		return x.l.late[int(q*float64(len(x.l.late)-1))]
	}
	broken := repair.Requeued + repair.Doubled + repair.Orphaned
	if x.l.early > 0 {
		x.Errorf("%d tasks were delivered early", x.l.early)
	}
	if broken > 0 && !x.torn {
		x.Errorf("Repair had to correct the store: %+v", repair)
	}
	if !x.loose {
		missing := slices.DeleteFunc(slices.Clone(x.lost), func(key string) bool { return x.inDoubt(x.asked[key]) })
		if len(missing) > 0 {
			x.Errorf("%d acknowledged tasks are missing: %.5q", len(missing), missing)
		}
		if x.dups > allowed {
			x.Errorf("%d duplicates after %d expired leases; at most %d are allowed", x.dups, st.Crashed, allowed)
		}
	}
	x.n = numbers{
		acknowledged: len(x.acked), lost: len(x.lost), duplicates: x.dups, early: x.l.early, crashed: int(st.Crashed),
		dead: len(dead), repaired: int(broken), late: p(0.5), worst: p(1),
	}
	x.Logf("%s: %v; %+v, took %v", strings.Join(x.notes, "; "), x.n, st, time.Since(x.begin).Round(time.Millisecond))
	return st
}

// inDoubt reports whether s overlaps a period in doubtful.
func (x *trial) inDoubt(s span) bool { return slices.ContainsFunc(x.doubtful, s.overlaps) }

// note adds a text to x.notes. The test logs the notes at its end.
func (x *trial) note(format string, args ...any) {
	x.notes = append(x.notes, fmt.Sprintf(format, args...))
}
