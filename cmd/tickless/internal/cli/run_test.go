package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// After a signal, a command that returns the context's error counts as interrupted.
// Without a signal, the same error is a failure.
func TestRun_Interrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals to send")
	}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			if signal.Ignored(s) {
				t.Skip("the tests were started with the signal ignored, as by nohup")
			}
			cmd := &cobra.Command{Use: "tickless", RunE: func(cmd *cobra.Command, _ []string) error {
				self, err := os.FindProcess(os.Getpid())
				if err != nil {
					return err
				}
				if err := self.Signal(s); err != nil {
					return err
				}
				<-cmd.Context().Done()
				return fmt.Errorf("reading: %w", cmd.Context().Err())
			}}
			var stderr bytes.Buffer
			if code := Run(cmd, nil, io.Discard, &stderr); code != ExitInterrupted || stderr.String() != "tickless: interrupted\n" {
				t.Errorf("exit code %d, want %d: %q", code, ExitInterrupted, stderr.String())
			}
		})
	}
	cmd := &cobra.Command{Use: "tickless", RunE: func(*cobra.Command, []string) error { return context.Canceled }}
	if code := Run(cmd, nil, io.Discard, io.Discard); code != ExitFailed {
		t.Errorf("without a signal the exit code is %d, want %d", code, ExitFailed)
	}
}
