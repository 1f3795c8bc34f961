package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/child"
)

// # Child processes
//
// Connections over TCP are held by children of this process: one, or several for
// more than one process may have open, each with a loopback address of its own.
// A child gets an order on its standard input, and answers with replies on
// its standard output.

// An order is what a child is to do.
type order struct {
	Config plainConfig
	Side   string
	Host   int // N of the address 127.0.0.N
}

// plainConfig is a config that is written field by field.
type plainConfig config

// A reply tells how far a child has come. The first has the number of
// heartbeats in its plan, the last has the tally.
type reply struct {
	Beats int64  `json:",omitempty"`
	Sent  int64  `json:",omitempty"`
	Tally *tally `json:",omitempty"`
}

// runChild is the child's part.
func runChild(cmd *cobra.Command) error {
	in, out := cmd.InOrStdin(), json.NewEncoder(cmd.OutOrStdout())
	var order order
	if err := child.ReadOrder(in, cmd.OutOrStdout(), &order); err != nil {
		return err
	}
	newServer := serverNamed(order.Side)
	if newServer == nil {
		return fmt.Errorf("there is no side %q", order.Side)
	}
	ctx, cancel := child.WithParent(cmd.Context(), in)
	defer cancel()

	plan := newPlan(config(order.Config), order.Config.Conns)
	if err := out.Encode(reply{Beats: int64(len(plan.beats))}); err != nil {
		return err
	}
	tally, err := plan.run(ctx, &tcpTransport{address: address(order.Host), side: newServer()}, func(sent int64) {
		_ = out.Encode(reply{Sent: sent}) // its parent may have died
	})
	if err != nil {
		return err
	}
	return out.Encode(reply{Tally: tally})
}

// serverNamed returns what makes the server of that name, or nil.
func serverNamed(name string) func() server {
	i := slices.IndexFunc(servers, func(f func() server) bool { return f().Name() == name })
	if i < 0 {
		return nil
	}
	return servers[i]
}

func address(host int) string { return "127.0.0." + strconv.Itoa(host) }

// children is one side's run, as the parent has it.
type children struct {
	config config
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
func (f *children) run(ctx context.Context) (*tally, error) {
	n := f.config.Processes
	f.sent = make([]int64, n)
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	tallies := make([]*tally, n)
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
	sum := &tally{Interrupted: ctx.Err() != nil}
	for _, t := range tallies {
		if t != nil {
			sum.add(t)
		}
	}
	return sum, nil
}

// runOne runs child i, and returns its tally.
func (f *children) runOne(ctx context.Context, i int) (*tally, error) {
	c, err := child.Start(ctx, "idle", order{Config: plainConfig(f.config.of(i)), Side: f.side, Host: i + 1})
	if err != nil {
		return nil, err
	}
	var tally *tally
	for replies := json.NewDecoder(c.Stdout); err == nil && tally == nil; {
		var r reply
		if err = replies.Decode(&r); err == nil {
			f.hear(i, r)
			tally = r.Tally
		}
	}
	// Its end says more than what its pipes do.
	_ = c.Stdin.Close()
	if waitErr := c.Cmd.Wait(); tally == nil && waitErr != nil {
		err = waitErr
	}
	if tally != nil {
		return tally, nil
	}
	return nil, fmt.Errorf("%w: %s", err, c.Complaints.String())
}

// hear takes note of what child i replies.
func (f *children) hear(i int, r reply) {
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
