package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"

	"github.com/spf13/cobra"
)

// # Child processes
//
// Connections over TCP are held by children of this process: one, or several for
// more than one process may have open, each with a loopback address of its own.
// A child gets an idleOrder on its standard input, and answers with idleReplies on
// its standard output.

// An idleOrder is what a child is to do.
type idleOrder struct {
	Config idleOrdered
	Side   string
	Host   int // N of the address 127.0.0.N
}

// idleOrdered is an idleConfig that is written field by field.
type idleOrdered idleConfig

// An idleReply tells how far a child has come. The first has the number of
// heartbeats in its plan, the last has the tally.
type idleReply struct {
	Beats int64      `json:",omitempty"`
	Sent  int64      `json:",omitempty"`
	Tally *idleTally `json:",omitempty"`
}

// runIdleChild is the child's part.
func runIdleChild(cmd *cobra.Command) error {
	signal.Ignore(os.Interrupt)
	in, out := cmd.InOrStdin(), json.NewEncoder(cmd.OutOrStdout())
	var order idleOrder
	if err := json.NewDecoder(in).Decode(&order); err != nil {
		return usageError{errors.New("--child is not for use by hand")}
	}
	newServer := idleServerNamed(order.Side)
	if newServer == nil {
		return fmt.Errorf("there is no side %q", order.Side)
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()

	plan := newIdlePlan(idleConfig(order.Config), order.Config.Conns)
	if err := out.Encode(idleReply{Beats: int64(len(plan.beats))}); err != nil {
		return err
	}
	tally, err := plan.run(ctx, &tcpTransport{address: idleAddress(order.Host), side: newServer()}, func(sent int64) {
		_ = out.Encode(idleReply{Sent: sent}) // its parent may have died
	})
	if err != nil {
		return err
	}
	return out.Encode(idleReply{Tally: tally})
}

func idleAddress(host int) string { return "127.0.0." + strconv.Itoa(host) }

// idleChildren is one side's run, as the parent has it.
type idleChildren struct {
	config idleConfig
	side   string
	// start is called when all have drawn their plans, with the number of
	// heartbeats, and returns what is called with the number of those sent.
	start func(beats int64) (progress func(sent int64))

	mu sync.Mutex
	// All below is guarded by mu.

	progress func(sent int64) // nil: not all have begun
	begun    int
	beats    int64
	sent     []int64
}

// run runs the side in child processes, and adds up their tallies. If one fails
// the others are stopped.
func (f *idleChildren) run(ctx context.Context) (*idleTally, error) {
	n := f.config.Processes
	f.sent = make([]int64, n)
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	tallies := make([]*idleTally, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			t, err := f.runOne(running, i)
			if err != nil {
				stop(fmt.Errorf("process %d: %w", i+1, err))
			}
			tallies[i] = t
		})
	}
	all.Wait()
	// An interrupted child may have come to nothing.
	if ctx.Err() == nil && running.Err() != nil {
		return nil, context.Cause(running)
	}
	sum := &idleTally{Interrupted: ctx.Err() != nil}
	for _, t := range tallies {
		if t != nil {
			sum.add(t)
		}
	}
	return sum, nil
}

// runOne runs child i, and returns its tally.
func (f *idleChildren) runOne(ctx context.Context, i int) (*idleTally, error) {
	c, err := startChild(ctx, "idle")
	if err != nil {
		return nil, err
	}
	order := idleOrder{Config: idleOrdered(f.config.of(i)), Side: f.side, Host: i + 1}
	err = json.NewEncoder(c.stdin).Encode(order)
	var tally *idleTally
	for replies := json.NewDecoder(c.stdout); err == nil && tally == nil; {
		var r idleReply
		if err = replies.Decode(&r); err == nil {
			f.hear(i, r)
			tally = r.Tally
		}
	}
	// Its end says more than what its pipes do.
	_ = c.stdin.Close()
	if waitErr := c.cmd.Wait(); tally == nil && waitErr != nil {
		err = waitErr
	}
	if tally != nil {
		return tally, nil
	}
	return nil, fmt.Errorf("%w: %s", err, c.complaints.String())
}

// hear takes note of what child i replies.
func (f *idleChildren) hear(i int, r idleReply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Beats > 0 {
		f.beats += r.Beats
		if f.begun++; f.begun == len(f.sent) {
			f.progress = f.start(f.beats)
		}
	}
	f.sent[i] = max(f.sent[i], r.Sent)
	if r.Tally != nil {
		f.sent[i] = r.Tally.Heartbeats
	}
	if f.progress != nil {
		sum := int64(0)
		for _, n := range f.sent {
			sum += n
		}
		f.progress(sum)
	}
}
