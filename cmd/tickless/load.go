package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/load"
)

// How many timers are held to weigh them: as many as the load has, within
// what gives a steady figure and takes less than a second.
const (
	minHeld = 100_000
	maxHeld = 1_000_000
)

// loadFlags are the flags of the load.
type loadFlags struct {
	config   load.Config
	tick     time.Duration
	executor string
	json     bool
}

func (f *loadFlags) validate() error {
	if err := f.config.Validate(); err != nil {
		return err
	}
	if f.tick < 0 || f.tick > time.Hour {
		return fmt.Errorf("the tick must lie between 1ns and 1h, not %v", f.tick)
	}
	if !slices.Contains(load.Executors, f.executor) {
		return fmt.Errorf("the executor must be one of %s, not %q", strings.Join(load.Executors, ", "), f.executor)
	}
	return nil
}

// newLoadCommand returns the command that runs when none is named.
func newLoadCommand() *cobra.Command {
	f := loadFlags{config: load.Config{Count: 1_000_000}}
	cmd := &cobra.Command{
		Use:   "tickless [flags]",
		Short: "Puts the same load of request timeouts on Tickless and on time.AfterFunc",
		Long: `Puts a load of request timeouts on Tickless, then the same load on
time.AfterFunc, and prints one table of both.

Requests arrive at a steady rate. Each starts a timer with its timeout. Most
are answered in time, which stops the timer; the others time out, which runs
the timer's callback. Delays, answers and their moments are drawn before, and
both sides get the very same ones.`,
		Example: `  tickless                                    a million requests over 3 seconds
  tickless --count 100k --duration 1s         a small load
  tickless --stop-ratio 0 --delay-min 1s      every request times out
  tickless --tick 10ms --executor goroutine   another tick, a goroutine a callback
  tickless --json > result.json               the figures for a program to read`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return usageError{err}
			}
			return runLoad(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var((*count)(&f.config.Count), "count", "requests; 10k and 1M are understood")
	flags.DurationVar(&f.config.Duration, "duration", 3*time.Second, "over which they arrive")
	flags.Float64Var(&f.config.StopRatio, "stop-ratio", 0.9, "share that is answered in time, 0 to 1")
	flags.DurationVar(&f.config.MinDelay, "delay-min", 100*time.Millisecond, "shortest timeout")
	flags.DurationVar(&f.config.MaxDelay, "delay-max", 2*time.Second, "longest timeout")
	flags.DurationVar(&f.tick, "tick", 0, "tick of the scheduler (default: the library's own)")
	flags.StringVar(&f.executor, "executor", load.Executors[0], "where its callbacks run: "+strings.Join(load.Executors, ", "))
	flags.Uint64Var(&f.config.Seed, "seed", 1, "draws the delays and the answers")
	flags.BoolVar(&f.json, "json", false, "print JSON instead of a table")
	return cmd
}

// report is what --json prints.
type report struct {
	machine
	Count       int           `json:"count"`
	DurationMS  int64         `json:"duration_ms"`
	StopRatio   float64       `json:"stop_ratio"`
	DelayMinMS  float64       `json:"delay_min_ms"`
	DelayMaxMS  float64       `json:"delay_max_ms"`
	TickNS      int64         `json:"tick_ns"` // 0 is the library's own
	Executor    string        `json:"executor"`
	Seed        uint64        `json:"seed"`
	Interrupted bool          `json:"interrupted"`
	Runs        []load.Result `json:"runs"`
}

// runLoad weighs both sides, runs the load on each in turn, and prints the
// results.
func runLoad(cmd *cobra.Command, f loadFlags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	// A side is made when its turn comes and forgotten after it, so that none
	// pays for another's memory.
	sides := []func(n int) load.Backend{
		func(n int) load.Backend { return load.NewTickless(n, f.tick, f.executor) },
		load.NewTime,
	}
	// Weighing comes before the plan is drawn, while the heap holds nothing
	// else that would make a collection longer.
	held := make([]*load.Held, len(sides))
	n := min(max(f.config.Count, minHeld), maxHeld)
	fmt.Fprintf(stderr, "first %s pending timers are weighed, then the load takes about %v a side\n",
		thousands(int64(n)), f.config.Duration+f.config.MaxDelay)
	for i, newBackend := range sides {
		h, err := load.Weigh(ctx, newBackend(n), n)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			held[i] = &h
		}
	}
	own, hasOwn, err := load.OwnCPU(ctx, f.config)
	if err != nil {
		return err
	}
	plan, err := load.NewPlan(f.config)
	if err != nil {
		return err
	}
	var results []load.Result
	for i, newBackend := range sides {
		if i > 0 && ctx.Err() != nil {
			break
		}
		backend := newBackend(f.config.Count)
		bar := newProgressBar(stderr, backend.Name(), int64(f.config.Count),
			requestsOver(f.config.Count, f.config.Duration))
		result, err := plan.Run(ctx, backend, bar.set)
		bar.finish()
		if err != nil {
			return err
		}
		result.Held = held[i]
		if hasOwn {
			result.OwnCPU = &own
		}
		results = append(results, result)
	}
	if err := printResults(stdout, f, results, ctx.Err() != nil); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return nil
}

// requestsOver says how many requests a run consists of.
func requestsOver(n int, d time.Duration) string {
	return fmt.Sprintf("%s requests over %v", thousands(int64(n)), d)
}

func printResults(w io.Writer, f loadFlags, results []load.Result, interrupted bool) error {
	if !f.json {
		return printTable(w, f.config, results, interrupted)
	}
	return printJSON(w, report{
		machine: thisMachine(),
		Count:   f.config.Count, DurationMS: f.config.Duration.Milliseconds(), StopRatio: f.config.StopRatio,
		DelayMinMS: inMillis(f.config.MinDelay), DelayMaxMS: inMillis(f.config.MaxDelay),
		TickNS: int64(f.tick), Executor: f.executor, Seed: f.config.Seed,
		Interrupted: interrupted, Runs: results,
	})
}
