package callbacks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/child"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
)

// # Worker processes
//
// The workers are children of this process. Each gets an order on its standard
// input, and goes on for as long as its input stays open. It writes a line of JSON when it
// works, for each chunk of tasks that it has scheduled, and for what the store has left.

// An order is what a worker process is told.
type order struct {
	Place       stores.Place
	Secret      []byte
	Concurrency int
	Lease       time.Duration

	// What it is to schedule, if it is to.

	Chunks   []int
	Tasks    int // in all
	URL      string
	Base     time.Time // when the first may be due
	Duration time.Duration
	Watch    bool // it says what the store has left
}

// news is a line that a worker process writes.
type news struct {
	Works bool `json:",omitempty"`
	Chunk *int `json:",omitempty"` // was scheduled, and acknowledged
	Left  *left
}

// left is what a store has of tasks that are not done.
type left struct{ Pending, Running, Dead, Crashed int64 }

func leftOf(ctx context.Context, c *durable.Client) (left, error) {
	st, err := c.Stats(ctx)
	return left{st.Pending, st.Running, st.Dead, st.Crashed}, err
}

// runChild is the child's part.
func runChild(cmd *cobra.Command) error {
	in := cmd.InOrStdin()
	var o order
	if err := child.ReadOrder(in, cmd.OutOrStdout(), &o); err != nil {
		return err
	}
	ctx, cancel := child.WithParent(context.Background(), in)
	defer cancel()
	st, closeStore, err := o.Place.Open(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelError}))
	client := durable.New(st, durable.WithLogger(log))

	// The receiver is on this machine, and the only one.
	calls := callback.New(callback.WithSecrets(o.Secret), callback.WithPerHost(o.Concurrency),
		callback.WithAllowed(netip.MustParsePrefix("127.0.0.0/8")))
	defer calls.Close()
	w := durable.NewWorker(client, durable.WithConcurrency(o.Concurrency), durable.WithLease(o.Lease),
		durable.WithShutdownTimeout(2*time.Second), durable.WithUnsafe(),
		durable.WithMaxCrashes(1<<20)) // it is killed for no fault of the tasks
	w.Handle(callback.Name, calls.Handle)

	var mu sync.Mutex
	out := json.NewEncoder(cmd.OutOrStdout())
	tell := func(n news) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(n)
	}
	// The first may be in the store already: the process before this one was killed before
	// it could say so. None of its tasks must come and go before that is settled.
	if len(o.Chunks) > 0 {
		if err := o.schedule(ctx, client, o.Chunks[0]); err != nil {
			return errors.Join(err, closeStore())
		}
		tell(news{Chunk: &o.Chunks[0]})
		o.Chunks = o.Chunks[1:]
	}
	tell(news{Works: true})
	var all sync.WaitGroup
	var failed error
	all.Go(func() {
		for _, i := range o.Chunks {
			if failed = o.schedule(ctx, client, i); failed != nil {
				cancel()
				return
			}
			tell(news{Chunk: &i})
		}
		for o.Watch && ctx.Err() == nil {
			if n, err := leftOf(ctx, client); err == nil {
				tell(news{Left: &n})
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	err = w.Run(ctx)
	cancel()
	all.Wait()
	if errors.Is(failed, context.Canceled) {
		failed = nil // it was told to stop
	}
	return errors.Join(failed, err, closeStore())
}

// A worker is a worker process, as the parent has it.
type worker struct {
	*child.Process
	ended chan struct{} // closed when it has ended

	mu   sync.Mutex
	left *left // the latest
}

// startWorker starts a worker process, and waits until it works or ctx ends. What it has
// scheduled is noted in the ledger.
func startWorker(ctx context.Context, o order, l *ledger) (*worker, error) {
	started, err := child.Start(context.Background(), "callbacks", o)
	if err != nil {
		return nil, err
	}
	c := &worker{Process: started, ended: make(chan struct{})}
	works := make(chan struct{})
	go func() {
		c.read(l, works)
		_ = c.Cmd.Wait()
		close(c.ended)
	}()
	select {
	case <-works:
	case <-c.ended:
		return nil, fmt.Errorf("a worker process has ended before it worked: %s", c.Complaints.String())
	case <-ctx.Done():
		c.kill() // it has no call in hand
		return nil, ctx.Err()
	}
	return c, nil
}

// read reads what the process says, until it ends.
func (c *worker) read(l *ledger, works chan struct{}) {
	in := bufio.NewScanner(c.Stdout)
	for in.Scan() {
		var n news
		if json.Unmarshal(in.Bytes(), &n) != nil {
			continue // a line that the process was killed in
		}
		switch {
		case n.Works:
			close(works)
		case n.Chunk != nil:
			l.acknowledge(*n.Chunk)
		case n.Left != nil:
			c.mu.Lock()
			c.left = n.Left
			c.mu.Unlock()
		}
	}
	_, _ = io.Copy(io.Discard, c.Stdout)
}

// idle reports whether the store has nothing more to do.
func (c *worker) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left != nil && c.left.Pending+c.left.Running == 0
}

// kill ends the process as kill -9 does, and waits for its end.
func (c *worker) kill() {
	_ = c.Cmd.Process.Kill()
	<-c.ended
	_ = c.Stdin.Close()
}

// stop has the worker finish what it has in hand.
func (c *worker) stop() {
	_ = c.Stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		c.kill()
	}
}
