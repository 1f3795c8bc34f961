package requests

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// report is what --json prints.
type report struct {
	cli.Machine
	Load        Config   `json:"load"`
	Interrupted bool     `json:"interrupted"`
	Runs        []Result `json:"runs"`
}

// sides are the sides that are compared, with room for n requests each: ours comes first.
// One is made when its turn comes and forgotten after it, so that none pays for another's
// memory.
var sides = []func(f flags, n int) Backend{
	func(f flags, n int) Backend { return NewTickless(n, f.options()...) },
	func(_ flags, n int) Backend { return NewTime(n) },
}

// runAll weighs both sides, runs the load on each in turn, and prints the
// results.
func runAll(cmd *cobra.Command, f flags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	// Weighing comes before the plan is drawn, while the heap holds nothing
	// else that would make a collection longer.
	held := make([]*Held, len(sides))
	n := min(max(f.config.Count, minHeld), maxHeld)
	fmt.Fprintf(stderr, "first %s pending timers are weighed, then the load takes about %v a side\n",
		cli.Thousands(int64(n)), f.config.Duration+f.config.MaxDelay)
	for i, newBackend := range sides {
		h, err := Weigh(ctx, newBackend(f, n), n)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			held[i] = &h
		}
	}
	plan, err := NewPlan(f.config)
	if err != nil {
		return err
	}
	var results []Result
	for i, newBackend := range sides {
		if i > 0 && ctx.Err() != nil {
			break
		}
		backend := newBackend(f, f.config.Count)
		bar := cli.NewBar(stderr, backend.Name(), int64(f.config.Count),
			cli.RequestsOver(f.config.Count, f.config.Duration))
		result, err := plan.Run(ctx, backend, bar.Set)
		bar.Finish()
		if err != nil {
			return err
		}
		result.Held = held[i]
		results = append(results, result)
	}
	if err := printReport(stdout, f, results, ctx.Err() != nil); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	ours := results[0]
	return ours.faults(ours.Lost + ours.Pending)
}

func printReport(w io.Writer, f flags, results []Result, interrupted bool) error {
	if !f.json {
		return printTable(w, f.config, results, interrupted)
	}
	return cli.PrintJSON(w, report{cli.ThisMachine(), f.config, interrupted, results})
}
