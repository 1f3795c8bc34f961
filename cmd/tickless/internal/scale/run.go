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

// implRuns are the results of one implementation, one for each number of timers that could be
// measured.
type implRuns struct {
	Name string    `json:"name"`
	Runs []*result `json:"runs"`
}

func measureAll(cmd *cobra.Command, f flags) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	report := report{Machine: figures.ThisMachine()}
	hasFailed := false
	for _, impl := range implementations {
		if ctx.Err() != nil || !f.withStdlib && impl.name != implementations[0].name {
			continue
		}
		runs := &implRuns{Name: impl.name}
		for _, n := range f.counts {
			r, err := measureInChild(ctx, stderr, impl, n)
			switch {
			case ctx.Err() != nil: // an interrupted measurement has no figures
			case err != nil:
				// The system may have killed the child to free memory. Continue with the
				// other measurements.
				hasFailed = true
				fmt.Fprintf(stderr, "tickless: %s, %s timers: %v\n", impl.name, figures.GroupDigits(int64(n)), err)
			case r != nil:
				runs.Runs = append(runs.Runs, r)
			}
		}
		report.Implementations = append(report.Implementations, runs)
		if !f.asJSON {
			printTable(stdout, runs)
		}
	}
	report.Interrupted = ctx.Err() != nil
	if f.asJSON {
		if err := figures.PrintJSON(stdout, report); err != nil {
			return err
		}
	}
	switch {
	case report.Interrupted:
		return cli.ErrInterrupted
	case hasFailed:
		return cli.ExitCode(cli.ExitFailed)
	}
	return nil
}

// measureInChild measures one implementation with n timers in a child process. If there
// is too little memory, it says so, and returns nil.
func measureInChild(ctx context.Context, stderr io.Writer, impl implementation, n int) (*result, error) {
	neededBytes := int64(n) * impl.bytesPerTimer
	if available, ok := figures.AvailableMemory(); ok && neededBytes > available {
		fmt.Fprintf(stderr, "skipped: %s needs about %s for %s timers, and %s are available\n", impl.name,
			figures.FormatGibibytes(float64(neededBytes)), figures.GroupDigits(int64(n)), figures.FormatGibibytes(float64(available)))
		return nil, nil
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
