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

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// A report is the output of --json.
type report struct {
	figures.Machine
	Interrupted     bool        `json:"interrupted"`
	Implementations []*implRuns `json:"sides"`
}

// implRuns are the results of one implementation, one for each number of timers.
type implRuns struct {
	Name string    `json:"name"`
	Runs []*result `json:"runs"`
}

func measureAll(cmd *cobra.Command, f flags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	report := report{Machine: figures.ThisMachine()}
	numFailed := 0
	for _, impl := range implementations {
		if !f.withStdlib && impl.name != implementations[0].name {
			continue
		}
		runs := &implRuns{Name: impl.name}
		for _, n := range f.counts {
			if ctx.Err() != nil {
				break
			}
			r, err := measureInChild(ctx, stderr, impl, n)
			switch {
			case ctx.Err() != nil: // an interrupted measurement has no figures
			case err != nil:
				// The system may have killed the child to free memory. Continue with the
				// other measurements.
				numFailed++
				r = &result{Count: n, FailReason: fmt.Sprintf("%s, %s timers: %v", impl.name, figures.GroupDigits(int64(n)), err)}
				fmt.Fprintf(stderr, "tickless: %s\n", r.FailReason)
				runs.Runs = append(runs.Runs, r)
			default:
				runs.Runs = append(runs.Runs, r)
			}
		}
		report.Implementations = append(report.Implementations, runs)
		if !f.asJSON && len(runs.Runs) > 0 {
			if err := printTable(stdout, runs); err != nil {
				return err
			}
		}
	}
	report.Interrupted = ctx.Err() != nil
	if err := cli.FinishReport(cmd, f.asJSON, report); err != nil || numFailed == 0 {
		return err
	}
	return cli.ExitCode(cli.ExitFailed)
}

// measureInChild measures one implementation with n timers in a child process. If there
// is too little memory, it skips the measurement.
func measureInChild(ctx context.Context, stderr io.Writer, impl implementation, n int) (*result, error) {
	neededBytes := int64(n) * impl.bytesPerTimer
	if available, ok := figures.AvailableMemory(); ok && neededBytes > available {
		r := &result{Count: n, SkipReason: fmt.Sprintf("%s needs about %s for %s timers, and %s are available",
			impl.name, figures.FormatGibibytes(float64(neededBytes)), figures.GroupDigits(int64(n)), figures.FormatGibibytes(float64(available)))}
		fmt.Fprintf(stderr, "skipped: %s\n", r.SkipReason)
		return r, nil
	}
	fmt.Fprintf(stderr, "%s: %s timers\n", impl.name, figures.GroupDigits(int64(n)))
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, executable, "scale", "--child", impl.name, "--counts", strconv.Itoa(n))
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

// runChild runs in the child process. It measures one implementation and writes the
// result.
func runChild(cmd *cobra.Command, name string, n int) error {
	i := slices.IndexFunc(implementations, func(s implementation) bool { return s.name == name })
	if i < 0 {
		return fmt.Errorf("no such implementation: %q", name)
	}
	go func() {
		_, _ = io.Copy(io.Discard, cmd.InOrStdin())
		os.Exit(cli.ExitFailed)
	}()
	return json.NewEncoder(cmd.OutOrStdout()).Encode(measureTimers(implementations[i].open(), n))
}
