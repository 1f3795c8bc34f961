package callbacks

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/measure"
	"github.com/tickless/tickless/redistimer"
)

// A run is one run: the tasks, the server that they call, and the workers.
type run struct {
	config config
	client redis.UniversalClient
	stderr io.Writer

	queue  *redistimer.Client
	order  order
	offset time.Duration // of the clock of Redis, beside ours
	bar    cli.Bar

	// What the receiver has seen.

	seen      []atomic.Uint32 // how often, by the task's number
	delivered atomic.Int64
	// handling counts the requests that are being handled.
	handling atomic.Int64
	refused  atomic.Int64 // calls with a wrong signature
	mu       sync.Mutex
	late     *measure.LateHistogram
	early    int64
	first    time.Time
	last     time.Time
}

// A result is what came of a run.
type result struct {
	Server      string
	Scheduled   int64 // acknowledged
	Scheduling  time.Duration
	Delivered   int64 // tasks
	Duplicated  int64 // calls beyond the first of a task
	Missing     int64 // tasks that were not delivered: lost, or pending if the run was interrupted
	Early       int64
	Refused     int64
	Late        measure.Lateness
	Rate        float64 // deliveries a second, from the first to the last
	Killed      int64
	TakenOver   int64 // leases that ran out
	Pid         int   // of the worker that was killed
	Interrupted bool
}

// all does everything.
func (r *run) all(ctx context.Context) (*result, error) {
	c := r.config
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	r.order = order{Addr: c.Addr, Cluster: c.Cluster, Name: "tickless-demo-" + rand.Text()[:10], Secret: secret,
		Concurrency: c.Concurrency, Lease: c.Lease}
	r.queue = redistimer.New(r.client, redistimer.WithName(r.order.Name))
	r.seen = make([]atomic.Uint32, c.Tasks)
	r.late = measure.NewLateHistogram()
	defer r.remove()
	var err error
	if r.offset, err = clockOffset(ctx, r.client); err != nil {
		return nil, err
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	receiver := &http.Server{Handler: http.HandlerFunc(r.receive)}
	go func() { _ = receiver.Serve(l) }()
	defer receiver.Close()

	children := make([]*worker, c.Workers)
	defer func() {
		var all sync.WaitGroup
		for _, child := range children {
			if child != nil {
				all.Go(child.stop)
			}
		}
		all.Wait()
	}()
	for i := range children {
		if children[i], err = startWorker(r.order); err != nil {
			return nil, err
		}
	}

	res := &result{}
	r.bar = cli.NewBar(r.stderr, "redis", int64(c.Tasks),
		fmt.Sprintf("%s tasks over %v, %d worker processes", cli.Thousands(int64(c.Tasks)), c.Duration, c.Workers))
	defer r.bar.Finish()
	begin := time.Now()
	// What is late because it was scheduled late would say nothing.
	base := begin.Add(time.Second + time.Duration(c.Tasks)*time.Second/10_000)
	if err := r.schedule(ctx, "http://"+l.Addr().String()+"/", base, res); err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("scheduling: %w", err)
	}
	res.Scheduling = time.Since(begin)
	if err := r.await(ctx, base, children, res); err != nil {
		return nil, err
	}
	return r.result(res, ctx.Err() != nil), nil
}

// await waits until every task is delivered and acknowledged, and kills a worker
// meanwhile, as soon as half of the time is over and some worker has something in hand.
func (r *run) await(ctx context.Context, base time.Time, children []*worker, res *result) error {
	killAt := base.Add(r.config.Duration / 2)
	end := base.Add(r.config.Duration + r.config.Patience)
	var restartAt time.Time
	for ctx.Err() == nil && time.Now().Before(end) {
		r.bar.Set(r.delivered.Load())
		for i, child := range children {
			if child == nil {
				continue
			}
			select {
			case <-child.ended:
				return fmt.Errorf("a worker process has ended by itself: %s: %s", child.Cmd.ProcessState, child.Complaints.String())
			default:
			}
			if i == 0 && r.config.Kill && res.Killed == 0 && time.Now().After(killAt) &&
				(r.handling.Load() > 0 || r.config.Handling == 0 || r.delivered.Load() == res.Scheduled) {
				res.Pid = child.Cmd.Process.Pid
				child.kill()
				children[0] = nil
				res.Killed++
				restartAt = time.Now().Add(300 * time.Millisecond)
			}
		}
		if children[0] == nil && time.Now().After(restartAt) {
			var err error
			if children[0], err = startWorker(r.order); err != nil {
				return err
			}
		}
		if r.delivered.Load() == res.Scheduled && (!r.config.Kill || res.Killed > 0 && children[0] != nil) {
			st, err := r.queue.Stats(ctx)
			if err == nil && st.Pending+st.Running == 0 {
				break
			}
		}
		measure.Sleep(ctx, 20*time.Millisecond)
	}
	r.bar.Set(r.delivered.Load())
	return nil
}

func (r *run) result(res *result, interrupted bool) *result {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if st, err := r.queue.Stats(ctx); err == nil {
		res.TakenOver = st.Crashed
	}
	res.Interrupted = interrupted
	for i := range r.seen {
		if n := r.seen[i].Load(); n > 0 {
			res.Delivered++
			res.Duplicated += int64(n) - 1
		}
	}
	res.Missing = max(0, res.Scheduled-res.Delivered)
	res.Refused = r.refused.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	res.Early, res.Late = r.early, r.late.Lateness()
	if d := r.last.Sub(r.first).Seconds(); d > 0 {
		res.Rate = float64(res.Delivered) / d
	}
	return res
}

// clockOffset returns how far the clock of Redis is ahead of ours, or zero if that
// is less than what can be told over the connection.
func clockOffset(ctx context.Context, client redis.UniversalClient) (time.Duration, error) {
	best, offset := time.Hour, time.Duration(0)
	for range 5 {
		begin := time.Now()
		theirs, err := client.Time(ctx).Result()
		if err != nil {
			return 0, fmt.Errorf("asking for the time: %w", err)
		}
		if took := time.Since(begin); took < best {
			best, offset = took, theirs.Sub(begin.Add(took/2))
		}
	}
	if offset.Abs() <= best+time.Millisecond {
		return 0, nil
	}
	return offset, nil
}

// remove removes the queue from a server that stays.
func (r *run) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	each := func(ctx context.Context, node *redis.Client) error {
		keys := node.Scan(ctx, 0, "{"+r.order.Name+":*", 1000).Iterator()
		for keys.Next(ctx) {
			_ = node.Unlink(ctx, keys.Val()).Err()
		}
		return keys.Err()
	}
	switch c := r.client.(type) {
	case *redis.ClusterClient:
		_ = c.ForEachMaster(ctx, each)
	case *redis.Client:
		_ = each(ctx, c)
	}
}
