package requests

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// report is the output of --json.
type report struct {
	cli.Machine
	Load        Config   `json:"load"`
	Interrupted bool     `json:"interrupted"`
	Runs        []Result `json:"runs"`
}

// newBackends make the compared backends, tickless first. A backend is made after the
// previous run, so that its memory is measured alone.
var newBackends = []func(f flags, n int) Backend{
	func(f flags, n int) Backend { return newTicklessBackend(n, f.options()...) },
	func(_ flags, n int) Backend { return NewStdBackend(n) },
}

// runBackends runs the load on one backend after the other and prints the results.
func runBackends(cmd *cobra.Command, f flags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	plan, err := NewPlan(f.config)
	if err != nil {
		return err
	}
	var results []Result
	for i, newBackend := range newBackends {
		if i > 0 && ctx.Err() != nil {
			break
		}
		backend := newBackend(f, f.config.Count)
		announceRun(stderr, backend.Name(), f.config)
		result, err := plan.Run(ctx, backend)
		if err != nil {
			return err
		}
		results = append(results, result)
	}
	if err := printReport(stdout, f, results, ctx.Err() != nil); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	ticklessResult := results[0]
	return ticklessResult.faultsError(ticklessResult.Lost + ticklessResult.Pending)
}

// announceRun writes to w that a run begins.
func announceRun(w io.Writer, name string, c Config) {
	fmt.Fprintf(w, "%s: %s requests over %v\n", name, cli.GroupDigits(int64(c.Count)), c.Duration)
}

func printReport(w io.Writer, f flags, results []Result, interrupted bool) error {
	if !f.asJSON {
		return printTable(w, f.config, results, interrupted)
	}
	return cli.PrintJSON(w, report{cli.ThisMachine(), f.config, interrupted, results})
}
