// Tickless shows what the timer library of that name does on this machine.
//
// Usage:
//
//	tickless [flags]            a load of request timeouts, beside time.AfterFunc
//	tickless purgatory [flags]  Kafka's load of delayed requests, beside a map of timers
//	tickless idle [flags]       a heartbeat server, beside SetReadDeadline and time.Timer
//	tickless scale [flags]      up to 100 million pending timers, beside time.AfterFunc
//	tickless redis [flags]      timers on Redis: HTTP callbacks by worker processes
//
// Each but the last puts the same load on the library and on what it is compared
// with, and prints one table of both. Run
//
//	tickless --help
//	tickless purgatory --help
//	tickless idle --help
//	tickless scale --help
//	tickless redis --help
//
// for the flags and examples.
//
// It exits with 0 when everything went well, 1 when something failed, 2 when
// it was called wrongly, and 130 when it was interrupted; what was measured
// until then is printed all the same.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

// errInterrupted is returned by a command that was cut short by a signal and
// has printed what it had.
var errInterrupted = errors.New("interrupted")

// A usageError is a mistake in how the program was called.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run carries out the program and returns its exit code.
func run(args []string, stdout, stderr io.Writer) int {
	// The first signal asks for an orderly end. After it the signals have
	// their usual effect again, so that a second one ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := newLoadCommand()
	root.AddCommand(newPurgatoryCommand(), newIdleCommand(), newScaleCommand(), newRedisCommand())
	root.SetArgs(withTwoDashes(root, args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })

	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "tickless: %v; see tickless --help\n", err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "tickless: %v\n", err)
		return exitFailed
	}
}

// noArguments refuses arguments of a command that has only flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, not %q", cmd.Name(), args[0])}
	}
	return nil
}

// withTwoDashes lets every flag be written with one dash too, as Go's own
// tools have them: -json for --json.
func withTwoDashes(root *cobra.Command, args []string) []string {
	known := map[string]bool{"help": true}
	var learn func(*cobra.Command)
	learn = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		for _, sub := range c.Commands() {
			learn(sub)
		}
	}
	learn(root)

	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = arg
		if arg == "--" {
			copy(out[i:], args[i:])
			break
		}
		if strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") {
			name, _, _ := strings.Cut(arg[1:], "=")
			if known[name] {
				out[i] = "-" + arg
			}
		}
	}
	return out
}
