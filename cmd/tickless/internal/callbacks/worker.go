package callbacks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/child"
	"github.com/tickless/tickless/redistimer"
	"github.com/tickless/tickless/redistimer/callback"
)

// # Worker processes
//
// The workers are children of this process. Each gets an order on its standard
// input, answers with a line when it works, and goes on for as long as its input
// stays open.

// An order is what a worker process is told.
type order struct {
	Addr        string
	Cluster     bool
	Name        string
	Secret      []byte
	Concurrency int
	Lease       time.Duration
}

// runChild is the child's part.
func runChild(cmd *cobra.Command) error {
	in := cmd.InOrStdin()
	var o order
	if err := child.ReadOrder(in, &o); err != nil {
		return err
	}
	ctx, cancel := child.WithParent(context.Background(), in)
	defer cancel()
	rc := config{Addr: o.Addr, Cluster: o.Cluster}.client()
	defer rc.Close()
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelError}))
	client := redistimer.New(rc, redistimer.WithName(o.Name), redistimer.WithLogger(log))

	// The receiver is on this machine, and the only one.
	calls := callback.New(callback.WithSecrets(o.Secret), callback.WithPerHost(o.Concurrency),
		callback.WithAllowed(netip.MustParsePrefix("127.0.0.0/8")))
	defer calls.Close()
	w := redistimer.NewWorker(client, redistimer.WithConcurrency(o.Concurrency), redistimer.WithLease(o.Lease),
		redistimer.WithShutdownTimeout(2*time.Second), redistimer.WithEviction())
	w.Handle(callback.Name, calls.Handle)
	fmt.Fprintln(cmd.OutOrStdout(), "works")
	return w.Run(ctx)
}

// A worker is a worker process, as the parent has it.
type worker struct {
	*child.Process
	ended chan struct{} // closed when it has ended
}

// startWorker starts a worker process, and waits until it works.
func startWorker(o order) (*worker, error) {
	started, err := child.Start(context.Background(), "redis")
	if err != nil {
		return nil, err
	}
	c := &worker{Process: started, ended: make(chan struct{})}
	err = json.NewEncoder(c.Stdin).Encode(o)
	var answer [6]byte
	if err == nil {
		_, err = io.ReadFull(c.Stdout, answer[:])
	}
	go func() {
		_, _ = io.Copy(io.Discard, c.Stdout)
		_ = c.Cmd.Wait()
		close(c.ended)
	}()
	if err != nil {
		c.kill()
		return nil, fmt.Errorf("a worker process did not begin: %w: %s", err, c.Complaints.String())
	}
	return c, nil
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
