package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// The program's exit codes.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitPending     = 3   // migrate found calls to rewrite, and did not rewrite them
	ExitInterrupted = 130 // 128 + SIGINT, as in shells
)

// ErrInterrupted is the error of a command that was interrupted by a signal. The command
// has printed its results so far.
var ErrInterrupted = errors.New("interrupted")

// An ExitCode is the error of a command that has already printed its error message.
type ExitCode int

func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// A UsageError reports wrong flags or arguments.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// Group makes a command with subcommands print its help, and refuse the names of others.
func Group(cmd *cobra.Command) {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return UsageError{fmt.Errorf("unknown command %q of %s", args[0], cmd.CommandPath())}
		}
		return cmd.Help()
	}
	cmd.Args = cobra.ArbitraryArgs
}

// One returns a check that there is one argument: an ID or a file.
func One(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) != 1:
			return UsageError{fmt.Errorf("one %s is required, got %d arguments", what, len(args))}
		case args[0] == "":
			return UsageError{fmt.Errorf("the %s is empty", what)}
		}
		return nil
	}
}

// RefuseArguments returns an error if there are arguments. It is for commands that take
// only flags.
func RefuseArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageError{fmt.Errorf("%s takes no arguments, got %q", cmd.Name(), args[0])}
	}
	return nil
}
