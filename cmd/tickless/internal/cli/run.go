package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Run runs the program and returns its exit code.
func Run(root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	// The first signal cancels ctx. Then stop restores the default effect of signals, so
	// that a second signal ends the program at once.
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	context.AfterFunc(ctx, stop)

	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return UsageError{err} })

	err := root.ExecuteContext(ctx)
	var usage UsageError
	var code ExitCode
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case ctx.Err() != nil && errors.Is(err, context.Canceled): // by a signal
		fmt.Fprintln(stderr, "tickless: interrupted")
		return ExitInterrupted
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "tickless: %v; see tickless --help\n", err)
		return ExitUsage
	default:
		fmt.Fprintf(stderr, "tickless: %v\n", err)
		return ExitFailed
	}
}
