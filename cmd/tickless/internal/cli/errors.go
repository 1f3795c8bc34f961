package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The program's exit codes.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitPending     = 3   // there is something to do, which was not asked for
	ExitInterrupted = 130 // 128 + SIGINT, as shells have it
)

// ErrInterrupted is returned by a command that a signal interrupted and that has
// printed its results so far.
var ErrInterrupted = errors.New("interrupted")

// An ExitCode is the error of a command that has already printed its error message.
type ExitCode int

func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// A UsageError reports wrong flags or arguments.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// NoArguments refuses arguments for a command that takes only flags.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageError{fmt.Errorf("%s takes no arguments, not %q", cmd.Name(), args[0])}
	}
	return nil
}

// A Fault counts violations of one guarantee; N is zero if there are none.
type Fault struct {
	Name string
	N    int64
}

// Faults returns an error that names the nonzero faults, or nil. It is only for
// tickless: violations by other implementations appear in the table and do not fail the
// run.
func Faults(faults ...Fault) error {
	var broken []string
	for _, f := range faults {
		if f.N != 0 {
			broken = append(broken, fmt.Sprintf("%s: %s", f.Name, Thousands(f.N)))
		}
	}
	if broken == nil {
		return nil
	}
	return errors.New("FAILED: timers of tickless " + strings.Join(broken, "; "))
}
