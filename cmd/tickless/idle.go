package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// idleFlags are the flags of the heartbeat server.
type idleFlags struct {
	config idleConfig
	json   bool
	// child is how the program calls itself: it runs one side, on the loopback
	// address 127.0.0.N, and prints an idleTally.
	child struct {
		side string
		host int
	}
}

func (f *idleFlags) validate() error {
	if err := f.config.validate(); err != nil {
		return err
	}
	if f.child.side != "" && (idleServerNamed(f.child.side) == nil || f.child.host < 1 || f.child.host > maxIdleProcesses+1) {
		return errors.New("--side and --host are not for use by hand")
	}
	return nil
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
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("idle takes no arguments, not %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return usageError{err}
			}
			if f.child.side != "" {
				return runIdleChild(cmd, f)
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
	flags.Uint64Var(&f.config.Seed, "seed", 1, "draws the load")
	flags.BoolVar(&f.json, "json", false, "print JSON instead of tables")
	flags.StringVar(&f.child.side, "side", "", "")
	flags.IntVar(&f.child.host, "host", 1, "")
	_ = flags.MarkHidden("side")
	_ = flags.MarkHidden("host")
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
	interrupted := ctx.Err() != nil
	if f.json {
		if err := printIdleJSON(stdout, c, tcp, memory, interrupted); err != nil {
			return err
		}
	}
	if interrupted {
		if !f.json {
			fmt.Fprintln(stdout, "Interrupted: this is what was done until then.")
		}
		return errInterrupted
	}
	return nil
}

// compareIdleServers runs the load over TCP on all sides.
func compareIdleServers(ctx context.Context, stderr io.Writer, c idleConfig) ([]*idleTally, error) {
	var plan *idlePlan
	if c.Processes == 1 {
		plan = newIdlePlan(c, c.Conns)
	}
	var tallies []*idleTally
	for _, newServer := range idleServers {
		if ctx.Err() != nil {
			break
		}
		server := newServer()
		var t *idleTally
		var err error
		if plan != nil {
			bar := newIdleBar(stderr, server.Name(), c.Conns, len(plan.beats), c)
			t, err = plan.run(ctx, &tcpTransport{address: idleAddress(1), side: server}, bar.set)
			bar.finish()
		} else {
			fmt.Fprintf(stderr, "%s: %s connections in %d processes\n", server.Name(), thousands(int64(c.Conns)), c.Processes)
			t, err = runIdleChildren(ctx, c, server.Name())
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", server.Name(), err)
		}
		t.Name = server.Name()
		tallies = append(tallies, t)
	}
	return tallies, nil
}

// compareIdleLoops runs the load in memory on all sides, and first on none.
func compareIdleLoops(ctx context.Context, stderr io.Writer, c idleConfig) ([]*idleTally, error) {
	plan := newIdlePlan(c, c.Memory)
	own, err := plan.first(idleOwnShare).run(ctx, &memoryTransport{side: new(noLoop)}, nil)
	if err != nil {
		return nil, err
	}
	var tallies []*idleTally
	for _, newLoop := range idleLoops {
		if ctx.Err() != nil {
			break
		}
		loop := newLoop()
		bar := newIdleBar(stderr, loop.Name(), c.Memory, len(plan.beats), c)
		t, err := plan.run(ctx, &memoryTransport{side: loop}, bar.set)
		bar.finish()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", loop.Name(), err)
		}
		t.Name = loop.Name()
		if own.CPU != nil {
			cpu := *own.CPU * idleOwnShare
			t.OwnCPU = &cpu
		}
		tallies = append(tallies, t)
	}
	return tallies, nil
}

// idleOwnShare is the part of the plan that tells how much CPU time the load
// takes by itself.
const idleOwnShare = 2

// first returns the first heartbeats of a plan, in which nobody falls silent.
func (p *idlePlan) first(share int) *idlePlan {
	return &idlePlan{config: p.config, conns: p.conns, beats: p.beats[:len(p.beats)/share], silent: make([]bool, p.conns)}
}

func idleAddress(host int) string { return "127.0.0." + strconv.Itoa(host) }

// newIdleBar makes a progress bar over a run's heartbeats.
func newIdleBar(w io.Writer, name string, conns, beats int, c idleConfig) progressBar {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		fmt.Fprintf(w, "%s: %s connections, %s heartbeats over %v\n", name, thousands(int64(conns)), thousands(int64(beats)), c.span())
		return progressBar{w: w}
	}
	return progressBar{w, progressbar.NewOptions64(int64(beats),
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(fmt.Sprintf("%-16s", name)),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true),
	)}
}

// runIdleChildren runs one side in several processes, and adds up their tallies.
func runIdleChildren(ctx context.Context, c idleConfig, side string) (*idleTally, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	tallies := make([]idleTally, c.Processes)
	errs := make([]error, c.Processes)
	var running sync.WaitGroup
	for i := range c.Processes {
		part := c.of(i)
		// They are on their own if this process dies; they end by themselves.
		cmd := exec.CommandContext(ctx, self, "idle", "--side", side, "--host", strconv.Itoa(i+1),
			"--conns", strconv.Itoa(part.Conns), "--timeout", part.Timeout.String(), "--heartbeat", part.Heartbeat.String(),
			"--duration", part.Duration.String(), "--silent", strconv.FormatFloat(part.Silent, 'g', -1, 64),
			"--seed", strconv.FormatUint(part.Seed, 10))
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = idlePatience + 2*time.Second
		running.Go(func() {
			out, err := cmd.Output()
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() == exitInterrupted {
				err = nil
			}
			if err == nil {
				err = json.Unmarshal(out, &tallies[i])
			}
			if exit != nil && err != nil {
				err = fmt.Errorf("process %d: %w: %s", i+1, err, exit.Stderr)
			}
			errs[i] = err
		})
	}
	running.Wait()
	sum := &idleTally{}
	for i := range tallies {
		if errs[i] != nil && ctx.Err() == nil {
			return nil, errs[i]
		}
		sum.add(tallies[i])
	}
	sum.Interrupted = ctx.Err() != nil
	return sum, nil
}

// runIdleChild runs one side and prints its tally.
func runIdleChild(cmd *cobra.Command, f idleFlags) error {
	ctx := cmd.Context()
	plan := newIdlePlan(f.config, f.config.Conns)
	server := idleServerNamed(f.child.side)()
	t, err := plan.run(ctx, &tcpTransport{address: idleAddress(f.child.host), side: server}, nil)
	if err != nil {
		return err
	}
	t.Name = server.Name()
	if err := json.NewEncoder(cmd.OutOrStdout()).Encode(t); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return nil
}
