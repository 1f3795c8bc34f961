// Package clitest runs the program as its users do, for the tests of its
// commands: they see exit codes, signals and both outputs.
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

// AsProgram names the environment variable that makes a test binary behave as
// the program: see Main.
const AsProgram = "TICKLESS_TEST_AS_PROGRAM"

// Main is the TestMain of a package whose tests run the program. Called by such a
// test, the binary is the program itself, of that command.
func Main(m *testing.M, newCommand func() *cobra.Command) {
	if os.Getenv(AsProgram) != "" {
		os.Exit(cli.Run(newCommand(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// Under returns the program with one subcommand, for Main.
func Under(newCommand func() *cobra.Command) func() *cobra.Command {
	return func() *cobra.Command {
		root := &cobra.Command{Use: "tickless"}
		root.AddCommand(newCommand())
		return root
	}
}

// Program returns the program, called with args.
func Program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), AsProgram+"=1")
	return cmd
}

// Run returns what the program printed and its exit code.
func Run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := Program(args...)
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

// arguments are those of a command, which is empty if there is none.
func arguments(command string, args ...string) []string {
	if command == "" {
		return args
	}
	return append([]string{command}, args...)
}

// A WrongCall is a mistake in how the program is called.
type WrongCall struct {
	Args []string
	Want string // part of the line that tells of it
}

// CheckCalledWrongly requires one line on standard error, and the exit code, for
// each of the mistakes.
func CheckCalledWrongly(t *testing.T, command string, calls []WrongCall) {
	for _, tt := range calls {
		t.Run(strings.Join(tt.Args, " "), func(t *testing.T) {
			stdout, stderr, code := Run(t, arguments(command, tt.Args...)...)
			if code != cli.ExitUsage {
				t.Errorf("exit code %d, want %d", code, cli.ExitUsage)
			}
			if stdout != "" {
				t.Errorf("printed %q to standard output", stdout)
			}
			if strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
				t.Errorf("want one line on standard error, got %q", stderr)
			}
			if !strings.HasPrefix(stderr, "tickless: ") || !strings.Contains(stderr, tt.Want) {
				t.Errorf("the line does not tell of %q: %q", tt.Want, stderr)
			}
		})
	}
}

// CheckHelp requires of a command's help that it mentions certain words, and
// returns it.
func CheckHelp(t *testing.T, command string, wants ...string) (help string) {
	t.Helper()
	for _, flag := range []string{"--help", "-h"} {
		stdout, stderr, code := Run(t, arguments(command, flag)...)
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
