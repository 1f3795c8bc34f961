package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// scaleFlags are the flags of the scale command.
type scaleFlags struct {
	counts counts
	std    bool // time.AfterFunc too
	json   bool
	child  bool // the program was called by itself: see runScaleChild
}

// maxScale is the most timers at once: a Scheduler's shards have room for more,
// machines seldom have.
const maxScale = 1_000_000_000

func (f *scaleFlags) validate() error {
	if len(f.counts) == 0 {
		return errors.New("there must be a number of timers")
	}
	for _, n := range f.counts {
		if n < 1 || n > maxScale {
			return fmt.Errorf("the number of timers must lie between 1 and %d, not %d", maxScale, n)
		}
	}
	if !slices.IsSorted(f.counts) {
		return errors.New("the numbers of timers must go up")
	}
	return nil
}

// newScaleCommand returns the command that keeps very many timers pending.
func newScaleCommand() *cobra.Command {
	f := scaleFlags{counts: counts{1_000_000, 10_000_000, 100_000_000}}
	cmd := &cobra.Command{
		Use:   "scale [flags]",
		Short: "Keeps up to 100 million timers pending, and tells what that takes",
		Long: `Starts many timers, all of them hours away, in a process of its own for each
number. Prints what they take of memory and of the garbage collector's time,
and what it then costs to start and stop another, and to stop a random one and
start another. Then the same with time.AfterFunc.

Nothing is begun that would take more memory than the machine has available.
100 million timers take about 4 GiB here, and 18 with time.AfterFunc.`,
		Example: `  tickless scale                          1M, 10M and 100M; takes some minutes
  tickless scale --counts 1M,2M,5M        other numbers
  tickless scale --time=false             without time.AfterFunc
  tickless scale --json > result.json     the figures for a program to read`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.child {
				return runScaleChild(cmd)
			}
			if err := f.validate(); err != nil {
				return usageError{err}
			}
			return runScale(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&f.counts, "counts", "of pending timers; 10k and 1M are understood")
	flags.BoolVar(&f.std, "time", true, "put time.AfterFunc beside it")
	flags.BoolVar(&f.json, "json", false, "print JSON instead of tables")
	flags.BoolVar(&f.child, "child", false, "")
	_ = flags.MarkHidden("child")
	return cmd
}

// A scaleReport is what --json prints.
type scaleReport struct {
	machine
	Interrupted bool         `json:"interrupted"`
	Sides       []*scaleRuns `json:"sides"`
}

// scaleRuns are the results of one side, in the order of the counts.
type scaleRuns struct {
	Name string         `json:"name"`
	Runs []*scaleResult `json:"runs"`
}

func runScale(cmd *cobra.Command, f scaleFlags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	report := scaleReport{machine: thisMachine()}
	for _, side := range scaleSides {
		if !f.std && side.name != scaleSides[0].name {
			continue
		}
		runs := &scaleRuns{Name: side.name}
		for _, n := range f.counts {
			if ctx.Err() != nil {
				break
			}
			r, err := scaleOne(ctx, stderr, side, n)
			switch {
			case ctx.Err() != nil: // what was cut short tells nothing
			case err != nil:
				return fmt.Errorf("%s, %s timers: %w", side.name, thousands(int64(n)), err)
			default:
				runs.Runs = append(runs.Runs, r)
			}
		}
		report.Sides = append(report.Sides, runs)
		if !f.json && len(runs.Runs) > 0 {
			if err := printScaleTable(stdout, runs); err != nil {
				return err
			}
		}
	}
	report.Interrupted = ctx.Err() != nil
	return conclude(cmd, f.json, report)
}

// scaleOne runs one side with n timers in a process of its own, unless there is
// too little memory.
func scaleOne(ctx context.Context, stderr io.Writer, side scaleSide, n int) (*scaleResult, error) {
	needed := int64(n) * side.bytes
	if available, ok := availableMemory(); ok && needed > available {
		r := &scaleResult{Count: n, Skipped: fmt.Sprintf("%s needs about %s for %s timers, and %s are available",
			side.name, gibibytes(float64(needed)), thousands(int64(n)), gibibytes(float64(available)))}
		fmt.Fprintf(stderr, "skipped: %s\n", r.Skipped)
		return r, nil
	}
	fmt.Fprintf(stderr, "%s: %s timers\n", side.name, thousands(int64(n)))
	c, err := startChild(ctx, "scale")
	if err != nil {
		return nil, err
	}
	defer c.stdin.Close()
	r := new(scaleResult)
	err = json.NewEncoder(c.stdin).Encode(scaleOrder{side.name, n})
	if err == nil {
		err = json.NewDecoder(c.stdout).Decode(r)
	}
	if waitErr := c.cmd.Wait(); waitErr != nil {
		return nil, fmt.Errorf("%w: %s", waitErr, c.complaints.String())
	}
	return r, err
}

// A scaleOrder is what a child is to do.
type scaleOrder struct {
	Side  string
	Count int
}

// runScaleChild is the child's part: an order on its standard input, the result
// on its standard output.
func runScaleChild(cmd *cobra.Command) error {
	signal.Ignore(os.Interrupt) // its parent ends it
	in := cmd.InOrStdin()
	var order scaleOrder
	if err := json.NewDecoder(in).Decode(&order); err != nil {
		return usageError{errors.New("--child is not for use by hand")}
	}
	i := slices.IndexFunc(scaleSides, func(s scaleSide) bool { return s.name == order.Side })
	if i < 0 {
		return fmt.Errorf("there is no side %q", order.Side)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(exitFailed)
	}()
	r := measureScale(scaleSides[i].open(), order.Count)
	return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
}

// counts is a flag's value of several counts, written with commas between.
type counts []int

// String writes them as the flag is written.
func (cs *counts) String() string {
	var parts []string
	for _, n := range *cs {
		parts = append(parts, (*count)(&n).String())
	}
	return strings.Join(parts, ",")
}

// Set parses s.
func (cs *counts) Set(s string) error {
	var parsed counts
	for part := range strings.SplitSeq(s, ",") {
		var c count
		if err := c.Set(strings.TrimSpace(part)); err != nil {
			return err
		}
		parsed = append(parsed, int(c))
	}
	*cs = parsed
	return nil
}

// Type names the value in the help.
func (*counts) Type() string { return "numbers" }
