package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/measure"
)

// A report is the output of --json.
type report struct {
	cli.Machine
	Interrupted bool        `json:"interrupted"`
	Sides       []*sideRuns `json:"sides"`
}

// sideRuns are the results of one side, one for each number of timers.
type sideRuns struct {
	Name string    `json:"name"`
	Runs []*result `json:"runs"`
}

func runAll(cmd *cobra.Command, f flags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	report := report{Machine: cli.ThisMachine()}
	numFailed := 0
	for _, side := range sides {
		if !f.withStdlib && side.name != sides[0].name {
			continue
		}
		runs := &sideRuns{Name: side.name}
		for _, n := range f.counts {
			if ctx.Err() != nil {
				break
			}
			r, err := runOne(ctx, stderr, side, n)
			switch {
			case ctx.Err() != nil: // an interrupted measurement has no figures
			case err != nil:
				// The system may have killed the child to free memory. Continue with the
				// other measurements.
				numFailed++
				r = &result{Count: n, Failed: fmt.Sprintf("%s, %s timers: %v", side.name, cli.Thousands(int64(n)), err)}
				fmt.Fprintf(stderr, "tickless: %s\n", r.Failed)
				runs.Runs = append(runs.Runs, r)
			default:
				runs.Runs = append(runs.Runs, r)
			}
		}
		report.Sides = append(report.Sides, runs)
		if !f.asJSON && len(runs.Runs) > 0 {
			if err := printTable(stdout, runs); err != nil {
				return err
			}
		}
	}
	report.Interrupted = ctx.Err() != nil
	if err := cli.Conclude(cmd, f.asJSON, report); err != nil || numFailed == 0 {
		return err
	}
	return cli.ExitCode(cli.ExitFailed)
}

// runOne measures one side with n timers in a child process. If there is too little
// memory, it skips the measurement.
func runOne(ctx context.Context, stderr io.Writer, side side, n int) (*result, error) {
	neededBytes := int64(n) * side.bytesPerTimer
	if available, ok := measure.AvailableMemory(); ok && neededBytes > available {
		r := &result{Count: n, Skipped: fmt.Sprintf("%s needs about %s for %s timers, and %s are available",
			side.name, cli.Gibibytes(float64(neededBytes)), cli.Thousands(int64(n)), cli.Gibibytes(float64(available)))}
		fmt.Fprintf(stderr, "skipped: %s\n", r.Skipped)
		return r, nil
	}
	fmt.Fprintf(stderr, "%s: %s timers\n", side.name, cli.Thousands(int64(n)))
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, self, "scale", "--child", side.name, "--counts", strconv.Itoa(n))
	// The child exits when its standard input closes, even if this process dies.
	if _, err := child.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := child.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(failed.Stderr))
	}
	if err != nil {
		return nil, err
	}
	r := new(result)
	return r, json.Unmarshal(out, r)
}

// runChild runs in the child process. It measures one side and writes the result.
func runChild(cmd *cobra.Command, name string, n int) error {
	i := slices.IndexFunc(sides, func(s side) bool { return s.name == name })
	if i < 0 {
		return fmt.Errorf("no such implementation: %q", name)
	}
	go func() {
		_, _ = io.Copy(io.Discard, cmd.InOrStdin())
		os.Exit(cli.ExitFailed)
	}()
	return json.NewEncoder(cmd.OutOrStdout()).Encode(measureTimers(sides[i].open(), n))
}
