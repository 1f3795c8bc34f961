// Package clitest runs the program, for tests of its commands that check exit codes and output, or
// in a child process also signals.
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
	newProgram = newCommand
	_ = os.Setenv(AsProgramEnv, "1") // a child is the program
	os.Exit(m.Run())
}

var newProgram func() *cobra.Command // of Main

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
	return exec.Command(os.Args[0], args...)
}

// Run runs the program in this process, which takes a small part of a child's time, and returns
// its output and exit code.
func Run(args ...string) (stdout, stderr string, code int) { return RunWith("", args...) }

// RunWith is Run with a standard input.
func RunWith(stdin string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	program := newProgram()
	program.SetIn(strings.NewReader(stdin))
	code = cli.Run(program, args, &out, &errs)
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
			stdout, stderr, code := Run(commandLine(command, tt.Args...)...)
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
		stdout, stderr, code := Run(commandLine(command, flag)...)
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
