package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/redistimer"
	"github.com/tickless/tickless/redistimer/callback"
)

// # Worker processes
//
// The workers are children of this process. Each gets a redisOrder on its standard
// input, answers with a line when it works, and goes on for as long as its input
// stays open.

// A redisOrder is what a worker process is told.
type redisOrder struct {
	Addr        string
	Cluster     bool
	Name        string
	Secret      []byte
	Concurrency int
	Lease       time.Duration
}

// runRedisChild is the child's part.
func runRedisChild(cmd *cobra.Command) error {
	signal.Ignore(os.Interrupt)
	in := cmd.InOrStdin()
	var o redisOrder
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return usageError{errors.New("--child is not for use by hand")}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	rc := redisConfig{Addr: o.Addr, Cluster: o.Cluster}.client()
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

// A redisChild is a worker process, as the parent has it.
type redisChild struct {
	*child
	ended chan struct{} // closed when it has ended
}

// startRedisChild starts a worker process, and waits until it works.
func startRedisChild(o redisOrder) (*redisChild, error) {
	started, err := startChild(context.Background(), "redis")
	if err != nil {
		return nil, err
	}
	c := &redisChild{child: started, ended: make(chan struct{})}
	err = json.NewEncoder(c.stdin).Encode(o)
	var answer [6]byte
	if err == nil {
		_, err = io.ReadFull(c.stdout, answer[:])
	}
	go func() {
		_, _ = io.Copy(io.Discard, c.stdout)
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	if err != nil {
		c.kill()
		return nil, fmt.Errorf("a worker process did not begin: %w: %s", err, c.complaints.String())
	}
	return c, nil
}

// kill ends the process as kill -9 does, and waits for its end.
func (c *redisChild) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
	_ = c.stdin.Close()
}

// stop has the worker finish what it has in hand.
func (c *redisChild) stop() {
	_ = c.stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		c.kill()
	}
}
