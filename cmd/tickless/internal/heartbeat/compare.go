package heartbeat

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// runAll runs all sides in turn.
func runAll(cmd *cobra.Command, f flags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	c := f.config
	var tcp, memory []*tally
	if c.Conns > 0 {
		var err error
		if tcp, err = compareServers(ctx, stderr, c); err != nil {
			return err
		}
		if !f.json {
			title := fmt.Sprintf("%s connections over TCP", cli.Thousands(int64(c.Conns)))
			if c.Processes > 1 {
				title += fmt.Sprintf(" in %d processes", c.Processes)
			}
			if err := printTable(stdout, title, c, tcp); err != nil {
				return err
			}
		}
	}
	if c.Memory > 0 && ctx.Err() == nil {
		var err error
		if memory, err = compareLoops(ctx, stderr, c); err != nil {
			return err
		}
		if !f.json && len(memory) > 0 {
			title := fmt.Sprintf("%s connections in memory", cli.Thousands(int64(c.Memory)))
			if err := printTable(stdout, title, c, memory); err != nil {
				return err
			}
		}
	}
	if err := cli.Conclude(cmd, f.json, report{
		Machine: cli.ThisMachine(), Interrupted: ctx.Err() != nil, Config: c, TCP: shownOf(tcp), Memory: shownOf(memory),
	}); err != nil {
		return err
	}
	return faults(append(tcp, memory...))
}

// faults returns an error if package idle did not evict what fell silent once, and in time.
func faults(tallies []*tally) error {
	var missed, early, twice int64
	for _, t := range tallies {
		if t.Name == new(ticklessServer).Name() {
			missed, early, twice = missed+t.Missed, early+t.Early, twice+t.Twice
		}
	}
	return cli.Faults(cli.Fault{Name: "missed", N: missed}, cli.Fault{Name: "early", N: early}, cli.Fault{Name: "twice", N: twice})
}

// compareServers runs the load over TCP on all sides. Each has processes of
// its own, even if it is one: so none inherits another's stacks and heap.
func compareServers(ctx context.Context, stderr io.Writer, c config) ([]*tally, error) {
	var tallies []*tally
	for _, newServer := range servers {
		if len(tallies) > 0 && ctx.Err() != nil {
			break
		}
		name := newServer().Name()
		t, err := runServer(ctx, stderr, c, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t.Name = name
		tallies = append(tallies, t)
	}
	return tallies, nil
}

func runServer(ctx context.Context, stderr io.Writer, c config, name string) (*tally, error) {
	bar := cli.Bar{}
	defer func() { bar.Finish() }()
	children := &children{config: c, side: name, start: func(beats int64) func(int64) {
		bar = newBar(stderr, name, c.Conns, beats, c.span())
		return bar.Set
	}}
	return children.run(ctx)
}

// compareLoops runs the load in memory on all sides, and before that a part
// of it on none, which tells what it takes by itself.
func compareLoops(ctx context.Context, stderr io.Writer, c config) ([]*tally, error) {
	plan := newPlan(c, c.Memory)
	share := max(1, c.span()/ownSpan)
	first := plan.first(int(share))
	bar := newBar(stderr, "the load alone", c.Memory, int64(len(first.beats)), c.span()/share)
	own, err := first.run(ctx, &memoryTransport{side: new(noLoop)}, bar.Set)
	bar.Finish()
	if err != nil {
		return nil, err
	}
	var tallies []*tally
	for _, newLoop := range loops {
		if ctx.Err() != nil {
			break
		}
		loop := newLoop()
		bar := newBar(stderr, loop.Name(), c.Memory, int64(len(plan.beats)), c.span())
		t, err := plan.run(ctx, &memoryTransport{side: loop}, bar.Set)
		bar.Finish()
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

// ownSpan is about how long a part of the plan has to be to tell how much CPU
// time the load takes by itself.
const ownSpan = 2 * time.Second

// first returns the first heartbeats of a plan, in which nobody falls silent.
func (p *plan) first(share int) *plan {
	return &plan{config: p.config, conns: p.conns, beats: p.beats[:len(p.beats)/share], silent: make([]bool, p.conns)}
}

// newBar makes a progress bar over a run's heartbeats.
func newBar(w io.Writer, name string, conns int, beats int64, span time.Duration) cli.Bar {
	return cli.NewBar(w, name, beats, fmt.Sprintf("%s connections, %s heartbeats over %v", cli.Thousands(int64(conns)), cli.Thousands(beats), span))
}
