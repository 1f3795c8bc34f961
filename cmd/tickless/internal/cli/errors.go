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

// ErrInterrupted is returned by a command that was cut short by a signal and
// has printed what it had.
var ErrInterrupted = errors.New("interrupted")

// An ExitCode is returned by a command that has said all it has to say.
type ExitCode int

func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// A UsageError is a mistake in how the program was called.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// NoArguments refuses arguments of a command that has only flags.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageError{fmt.Errorf("%s takes no arguments, not %q", cmd.Name(), args[0])}
	}
	return nil
}

// A Fault is a number that is zero where a side has kept its promises.
type Fault struct {
	Name string
	N    int64
}

// Faults returns an error that says which are not zero, or nil. Of the sides it is for our
// own: what another one breaks is in the table, and no failure of the run.
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
