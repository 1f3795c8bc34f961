// Package clitest runs the program in a child process, for tests of its commands that
// check exit codes, signals and output.
package clitest

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
)

// AsProgramEnv is the environment variable that makes a test binary run the program
// instead of its tests: see Main.
const AsProgramEnv = "TICKLESS_TEST_AS_PROGRAM"

// Main is the body of TestMain. If the environment variable AsProgramEnv is set, Main
// runs the command that newCommand returns. Otherwise it runs the tests.
func Main(m *testing.M, newCommand func() *cobra.Command) {
	if os.Getenv(AsProgramEnv) != "" {
		os.Exit(cli.Run(newCommand(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// UnderRoot returns a function for Main. The function makes a root command with one
// subcommand, which newCommand returns.
func UnderRoot(newCommand func() *cobra.Command) func() *cobra.Command {
	return func() *cobra.Command {
		root := &cobra.Command{Use: "tickless"}
		root.AddCommand(newCommand())
		return root
	}
}

// ProgramCmd returns an exec.Cmd that runs the program with args.
func ProgramCmd(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), AsProgramEnv+"=1")
	return cmd
}

// Run runs the program and returns its output and exit code.
func Run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := ProgramCmd(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return out.String(), errs.String(), code
}

// commandLine returns the name of the command and its arguments. The root command has the
// name "".
func commandLine(command string, args ...string) []string {
	if command == "" {
		return args
	}
	return append([]string{command}, args...)
}

// A WrongCall is a call of the program with wrong flags or arguments.
type WrongCall struct {
	Args      []string
	WantError string // part of the error line
}

// CheckWrongCalls checks that each call prints one line to standard error and exits with
// ExitUsage.
func CheckWrongCalls(t *testing.T, command string, calls []WrongCall) {
	for _, tt := range calls {
		t.Run(strings.Join(tt.Args, " "), func(t *testing.T) {
			stdout, stderr, code := Run(t, commandLine(command, tt.Args...)...)
			if code != cli.ExitUsage {
				t.Errorf("exit code %d, want %d", code, cli.ExitUsage)
			}
			if stdout != "" {
				t.Errorf("printed %q to standard output", stdout)
			}
			if strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
				t.Errorf("want one line on standard error, got %q", stderr)
			}
			if !strings.HasPrefix(stderr, "tickless: ") || !strings.Contains(stderr, tt.WantError) {
				t.Errorf("want a line that contains %q, got %q", tt.WantError, stderr)
			}
		})
	}
}

// CheckHelp checks that a command's help text contains all wants, and returns the text.
func CheckHelp(t *testing.T, command string, wants ...string) (help string) {
	t.Helper()
	for _, flag := range []string{"--help", "-h"} {
		stdout, stderr, code := Run(t, commandLine(command, flag)...)
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit code %d, standard error %q", flag, code, stderr)
		}
		for _, want := range append(wants, "Examples:") {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s does not mention %s", flag, want)
			}
		}
		help = stdout
	}
	return help
}
