package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/child"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/measure"
)

// A report is what --json prints.
type report struct {
	cli.Machine
	Interrupted bool        `json:"interrupted"`
	Sides       []*sideRuns `json:"sides"`
}

// sideRuns are the results of one side, in the order of the counts.
type sideRuns struct {
	Name string    `json:"name"`
	Runs []*result `json:"runs"`
}

func runAll(cmd *cobra.Command, f flags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	report := report{Machine: cli.ThisMachine()}
	failed := 0
	for _, side := range sides {
		if !f.std && side.name != sides[0].name {
			continue
		}
		runs := &sideRuns{Name: side.name}
		for _, n := range f.counts {
			if ctx.Err() != nil {
				break
			}
			r, err := runOne(ctx, stderr, side, n)
			switch {
			case ctx.Err() != nil: // what was cut short tells nothing
			case err != nil:
				// As when the system ends it for want of memory: the others tell something still.
				failed++
				r = &result{Count: n, Failed: fmt.Sprintf("%s, %s timers: %v", side.name, cli.Thousands(int64(n)), err)}
				fmt.Fprintf(stderr, "tickless: %s\n", r.Failed)
				runs.Runs = append(runs.Runs, r)
			default:
				runs.Runs = append(runs.Runs, r)
			}
		}
		report.Sides = append(report.Sides, runs)
		if !f.json && len(runs.Runs) > 0 {
			if err := printTable(stdout, runs); err != nil {
				return err
			}
		}
	}
	report.Interrupted = ctx.Err() != nil
	if err := cli.Conclude(cmd, f.json, report); err != nil || failed == 0 {
		return err
	}
	return cli.ExitCode(cli.ExitFailed)
}

// runOne runs one side with n timers in a process of its own, unless there is
// too little memory.
func runOne(ctx context.Context, stderr io.Writer, side side, n int) (*result, error) {
	needed := int64(n) * side.bytes
	if available, ok := measure.AvailableMemory(); ok && needed > available {
		r := &result{Count: n, Skipped: fmt.Sprintf("%s needs about %s for %s timers, and %s are available",
			side.name, cli.Gibibytes(float64(needed)), cli.Thousands(int64(n)), cli.Gibibytes(float64(available)))}
		fmt.Fprintf(stderr, "skipped: %s\n", r.Skipped)
		return r, nil
	}
	fmt.Fprintf(stderr, "%s: %s timers\n", side.name, cli.Thousands(int64(n)))
	c, err := child.Start(ctx, "scale", order{side.name, n})
	if err != nil {
		return nil, err
	}
	defer c.Stdin.Close()
	r := new(result)
	err = json.NewDecoder(c.Stdout).Decode(r)
	if waitErr := c.Cmd.Wait(); waitErr != nil {
		return nil, fmt.Errorf("%w: %s", waitErr, c.Complaints.String())
	}
	return r, err
}

// An order is what a child is to do.
type order struct {
	Side  string
	Count int
}

// runChild is the child's part: an order on its standard input, the result
// on its standard output.
func runChild(cmd *cobra.Command) error {
	in := cmd.InOrStdin()
	var order order
	if err := child.ReadOrder(in, cmd.OutOrStdout(), &order); err != nil {
		return err
	}
	i := slices.IndexFunc(sides, func(s side) bool { return s.name == order.Side })
	if i < 0 {
		return fmt.Errorf("there is no side %q", order.Side)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(cli.ExitFailed)
	}()
	r := measureTimers(sides[i].open(), order.Count)
	return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
}
