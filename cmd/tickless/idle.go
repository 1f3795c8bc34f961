package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// idleFlags are the flags of the heartbeat server.
type idleFlags struct {
	config idleConfig
	json   bool
	child  bool // the program was called by itself: see runIdleChild
}

// newIdleCommand returns the command that runs a heartbeat server.
func newIdleCommand() *cobra.Command {
	f := idleFlags{config: idleConfig{Conns: 8_000, Memory: 100_000}}
	cmd := &cobra.Command{
		Use:   "idle [flags]",
		Short: "Runs a heartbeat server and its clients, and evicts the silent ones",
		Long: `Runs a server and its clients, connected over the loopback interface. The
clients send heartbeats at random intervals; some fall silent, and the server
has to find and close those connections. It does so with package idle, with
SetReadDeadline before each Read, and with a time.Timer that each heartbeat
resets. Then the same with more connections to an event loop in memory, where
the cost of the timeouts alone can be told.

Everything is drawn before, and all sides get the very same load. Nothing
listens or connects outside of 127.0.0.0/8.`,
		Example: `  tickless idle                                 8,000 connections, then 100,000 in memory
  tickless idle --conns 30k --processes 4 --heartbeat 2s --timeout 4s
                                                more than one process may have open
  tickless idle --conns 0 --memory 1M           only in memory
  tickless idle --timeout 30s --heartbeat 5s    as servers have it; takes minutes
  tickless idle --json > result.json            the figures for a program to read`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.child {
				return runIdleChild(cmd)
			}
			if err := f.config.validate(); err != nil {
				return usageError{err}
			}
			return runIdle(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var((*count)(&f.config.Conns), "conns", "connections over TCP; 10k is understood")
	flags.IntVar(&f.config.Processes, "processes", 1, "that they are spread over, each with an address of its own")
	flags.Var((*count)(&f.config.Memory), "memory", "connections in memory")
	flags.DurationVar(&f.config.Timeout, "timeout", 1500*time.Millisecond, "after which a silent connection is evicted")
	flags.DurationVar(&f.config.Heartbeat, "heartbeat", 250*time.Millisecond, "between two of a connection, on average")
	flags.DurationVar(&f.config.Duration, "duration", 500*time.Millisecond, "over which connections fall silent")
	flags.Float64Var(&f.config.Silent, "silent", 0.03, "share of them that does, 0 to 1")
	flags.DurationVar(&f.config.Patience, "patience", 3*time.Second, "how late the last evictions may come before they count as missed")
	flags.Uint64Var(&f.config.Seed, "seed", 1, "draws the load")
	flags.BoolVar(&f.json, "json", false, "print JSON instead of tables")
	flags.BoolVar(&f.child, "child", false, "")
	_ = flags.MarkHidden("child")
	return cmd
}

func idleServerNamed(name string) func() idleServer {
	i := slices.IndexFunc(idleServers, func(f func() idleServer) bool { return f().Name() == name })
	if i < 0 {
		return nil
	}
	return idleServers[i]
}

// runIdle runs all sides in turn.
func runIdle(cmd *cobra.Command, f idleFlags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	c := f.config
	var tcp, memory []*idleTally
	if c.Conns > 0 {
		var err error
		if tcp, err = compareIdleServers(ctx, stderr, c); err != nil {
			return err
		}
		if !f.json {
			title := fmt.Sprintf("%s connections over TCP", thousands(int64(c.Conns)))
			if c.Processes > 1 {
				title += fmt.Sprintf(" in %d processes", c.Processes)
			}
			if err := printIdleTable(stdout, title, c, tcp); err != nil {
				return err
			}
		}
	}
	if c.Memory > 0 && ctx.Err() == nil {
		var err error
		if memory, err = compareIdleLoops(ctx, stderr, c); err != nil {
			return err
		}
		if !f.json && len(memory) > 0 {
			title := fmt.Sprintf("%s connections in memory", thousands(int64(c.Memory)))
			if err := printIdleTable(stdout, title, c, memory); err != nil {
				return err
			}
		}
	}
	return conclude(cmd, f.json, idleReport{
		machine: thisMachine(), Interrupted: ctx.Err() != nil, Config: c, TCP: shownOf(tcp), Memory: shownOf(memory),
	})
}

// compareIdleServers runs the load over TCP on all sides. Each has processes of
// its own, even if it is one: so none inherits another's stacks and heap.
func compareIdleServers(ctx context.Context, stderr io.Writer, c idleConfig) ([]*idleTally, error) {
	var tallies []*idleTally
	for _, newServer := range idleServers {
		if len(tallies) > 0 && ctx.Err() != nil {
			break
		}
		name := newServer().Name()
		t, err := runIdleServer(ctx, stderr, c, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t.Name = name
		tallies = append(tallies, t)
	}
	return tallies, nil
}

func runIdleServer(ctx context.Context, stderr io.Writer, c idleConfig, name string) (*idleTally, error) {
	bar := progressBar{}
	defer func() { bar.finish() }()
	children := &idleChildren{config: c, side: name, start: func(beats int64) func(int64) {
		bar = newIdleBar(stderr, name, c.Conns, beats, c.span())
		return bar.set
	}}
	return children.run(ctx)
}

// compareIdleLoops runs the load in memory on all sides, and before that a part
// of it on none, which tells what it takes by itself.
func compareIdleLoops(ctx context.Context, stderr io.Writer, c idleConfig) ([]*idleTally, error) {
	plan := newIdlePlan(c, c.Memory)
	share := max(1, c.span()/idleOwnSpan)
	first := plan.first(int(share))
	bar := newIdleBar(stderr, "the load alone", c.Memory, int64(len(first.beats)), c.span()/share)
	own, err := first.run(ctx, &memoryTransport{side: new(noLoop)}, bar.set)
	bar.finish()
	if err != nil {
		return nil, err
	}
	var tallies []*idleTally
	for _, newLoop := range idleLoops {
		if ctx.Err() != nil {
			break
		}
		loop := newLoop()
		bar := newIdleBar(stderr, loop.Name(), c.Memory, int64(len(plan.beats)), c.span())
		t, err := plan.run(ctx, &memoryTransport{side: loop}, bar.set)
		bar.finish()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", loop.Name(), err)
		}
		t.Name = loop.Name()
		if own.CPU != nil && !own.Interrupted {
			cpu := *own.CPU * share
			t.OwnCPU = &cpu
		}
		tallies = append(tallies, t)
	}
	return tallies, nil
}

// idleOwnSpan is about how long a part of the plan has to be to tell how much CPU
// time the load takes by itself.
const idleOwnSpan = 2 * time.Second

// first returns the first heartbeats of a plan, in which nobody falls silent.
func (p *idlePlan) first(share int) *idlePlan {
	return &idlePlan{config: p.config, conns: p.conns, beats: p.beats[:len(p.beats)/share], silent: make([]bool, p.conns)}
}

// newIdleBar makes a progress bar over a run's heartbeats.
func newIdleBar(w io.Writer, name string, conns int, beats int64, span time.Duration) progressBar {
	return newProgressBar(w, name, beats, fmt.Sprintf("%s connections, %s heartbeats over %v", thousands(int64(conns)), thousands(beats), span))
}
