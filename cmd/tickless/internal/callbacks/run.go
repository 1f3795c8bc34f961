package callbacks

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/measure"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
)

// A run is one run: the tasks, the server that they call, and the workers.
type run struct {
	config config
	place  stores.Place
	stderr io.Writer

	order    order
	offset   time.Duration // of the store's clock, beside ours
	bar      cli.Bar
	ledger   *ledger
	handling atomic.Int64 // requests that are being handled
	refused  atomic.Int64 // calls with a wrong signature

	children []*worker // the first schedules, and is killed; nil while it is not there
	killed   []kill
}

// A kill is what a process had in hand when it was killed.
type kill struct {
	Pid        int   `json:"pid"`
	Calls      int64 `json:"calls"`      // being made
	Scheduling bool  `json:"scheduling"` // it had not scheduled all
}

// A result is what came of a run.
type result struct {
	Store       string
	Scheduled   int64 // acknowledged
	Scheduling  time.Duration
	Delivered   int64 // tasks
	Duplicated  int64 // calls beyond the first of a task
	Missing     int64 // acknowledged tasks that were not delivered: lost, or pending if the run was interrupted
	Early       int64
	Refused     int64
	Left        *left // in the store at the end; nil: it could not be opened
	Late        measure.Lateness
	Rate        float64 // deliveries a second, from the first to the last
	Killed      []kill
	Interrupted bool
}

// failed reports whether a promise was broken, or not put to the test.
func (r *result) failed(c config) bool {
	return !r.Interrupted && (r.Scheduled < int64(c.Tasks) || len(r.Killed) < c.Kills || r.Missing > 0 || r.Early > 0 || r.Refused > 0 || r.Left == nil || *r.Left != left{Crashed: r.Left.Crashed})
}

func queueName() string { return "tickless-demo-" + strings.ToLower(rand.Text()[:10]) }

// all does everything.
func (r *run) all(ctx context.Context) (*result, error) {
	c := r.config
	r.ledger = newLedger(c.Tasks)
	r.order = order{Place: r.place, Secret: make([]byte, 32), Concurrency: c.Concurrency, Lease: c.Lease,
		Tasks: c.Tasks, Duration: c.Duration}
	_, _ = rand.Read(r.order.Secret)
	var err error
	if r.offset, err = r.clockOffset(ctx); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	receiver := &http.Server{Handler: http.HandlerFunc(r.receive)}
	go func() { _ = receiver.Serve(l) }()
	defer receiver.Close()
	r.order.URL = "http://" + l.Addr().String() + "/"

	res := &result{}
	r.bar = cli.NewBar(r.stderr, "callbacks", int64(c.Tasks),
		fmt.Sprintf("%s tasks over %v, worker processes: %d", cli.Thousands(int64(c.Tasks)), c.Duration, c.Workers))
	defer r.bar.Finish()
	begin := time.Now()
	// What is late because it was scheduled late would say nothing.
	r.order.Base = begin.Add(2*time.Second + time.Duration(c.Tasks)*time.Second/10_000).Add(r.offset)
	r.children = make([]*worker, c.Workers)
	defer r.stop()
	for i := range r.children {
		if err := r.start(ctx, i); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	if err := r.await(ctx, begin, res); err != nil {
		return nil, err
	}
	r.stop()
	r.ledger.sum(res)
	res.Refused, res.Killed, res.Interrupted = r.refused.Load(), r.killed, ctx.Err() != nil
	res.Left = r.leftAtLast()
	return res, nil
}

// start starts a worker process. The first has to schedule what was not acknowledged.
func (r *run) start(ctx context.Context, i int) (err error) {
	o := r.order
	if i == 0 {
		o.Chunks, o.Watch = r.ledger.open(), true
	}
	r.children[i], err = startWorker(ctx, o, r.ledger)
	return err
}

// stop has all workers finish what they have in hand.
func (r *run) stop() {
	var all sync.WaitGroup
	for i, child := range r.children {
		if child != nil {
			all.Go(child.stop)
			r.children[i] = nil
		}
	}
	all.Wait()
}

// restart is how long the first worker is away when it was killed.
const restart = 300 * time.Millisecond

// await waits until every task is delivered and acknowledged, and kills the first worker
// meanwhile.
func (r *run) await(ctx context.Context, begin time.Time, res *result) error {
	base := r.order.Base.Add(-r.offset)
	var restartAt, lastKill time.Time
	for ctx.Err() == nil && time.Now().Before(r.config.end(base, lastKill, r.ledger.lastAcknowledged())) {
		r.bar.Set(r.ledger.delivered.Load())
		scheduled := r.ledger.acked() == r.config.Tasks
		calls := r.handling.Load()
		if scheduled && res.Scheduling == 0 {
			res.Scheduling = time.Since(begin)
		}
		for _, child := range r.children {
			if child == nil {
				continue
			}
			select {
			case <-child.ended:
				return fmt.Errorf("a worker process has ended by itself: %s: %s", child.Cmd.ProcessState, child.Complaints.String())
			default:
			}
		}
		switch first := r.children[0]; {
		case first == nil && time.Now().After(restartAt):
			if err := r.start(ctx, 0); err != nil && ctx.Err() == nil {
				return err
			}
		case first != nil && r.now(base, calls):
			r.killed = append(r.killed, kill{first.Cmd.Process.Pid, calls, !scheduled})
			first.kill()
			r.children[0] = nil
			lastKill = time.Now()
			restartAt = lastKill.Add(restart)
		case first != nil && scheduled && len(r.killed) == r.config.Kills &&
			r.ledger.delivered.Load() == int64(r.config.Tasks) && first.idle():
			r.bar.Set(r.ledger.delivered.Load())
			return nil
		}
		measure.Sleep(ctx, 5*time.Millisecond)
	}
	r.bar.Set(r.ledger.delivered.Load())
	return nil
}

// now reports whether it is time for the next kill, while so many calls are being made. The first comes when a half is
// scheduled; the others are spread over the time of delivery, each as soon as calls are
// being made.
func (r *run) now(base time.Time, calls int64) bool {
	n := len(r.killed)
	if n == r.config.Kills {
		return false
	}
	if n == 0 && r.config.Kills > 1 {
		return r.ledger.acked() >= r.config.Tasks/2
	}
	of := r.config.Kills
	if of > 1 {
		n, of = n-1, of-1
	}
	at := base.Add(r.config.Duration * time.Duration(n+1) / time.Duration(of+1))
	busy := calls > 0 || r.config.Handling == 0 || r.ledger.delivered.Load() == int64(r.config.Tasks)
	return time.Now().After(at) && busy && r.ledger.acked() == r.config.Tasks
}

// leftAtLast opens the store when all workers have ended, and looks what it has.
func (r *run) leftAtLast() *left {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	st, closeStore, err := r.place.Open(io.Discard)
	if err != nil {
		fmt.Fprintln(r.stderr, "tickless: the store at the end:", err)
		return nil
	}
	defer closeStore()
	n, err := leftOf(ctx, durable.New(st))
	if err != nil {
		fmt.Fprintln(r.stderr, "tickless: the store at the end:", err)
		return nil
	}
	return &n
}

// clockOffset returns how far the store's clock is ahead of ours, or zero if that is less
// than what can be told over a connection. A directory's is ours.
func (r *run) clockOffset(ctx context.Context) (time.Duration, error) {
	if r.place.Dir != "" {
		return 0, nil
	}
	client, err := r.place.Client()
	if err != nil {
		return 0, err
	}
	defer client.Close()
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
