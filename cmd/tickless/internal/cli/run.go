package cli

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

// Run carries out the program and returns its exit code.
func Run(root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	// The first signal asks for an orderly end. After it the signals have
	// their usual effect again, so that a second one ends the program at once.
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	context.AfterFunc(ctx, stop)

	root.SetArgs(withTwoDashes(root, args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.CompletionOptions.DisableDefaultCmd = true
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
