package requests

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, NewCommand) }

func TestRequests_CalledWrongly(t *testing.T) {
	clitest.CheckWrongCalls(t, "", []clitest.WrongCall{
		{Args: []string{"--bogus"}, WantError: "--bogus"},
		{Args: []string{"-x"}, WantError: "'x'"},
		{Args: []string{"bogus"}, WantError: `unknown command "bogus"`},
		{Args: []string{"--count", "0"}, WantError: "count"},
		{Args: []string{"--count", "-5"}, WantError: "count"},
		{Args: []string{"--count", "many"}, WantError: "whole number"},
		{Args: []string{"--count", "1.5"}, WantError: "whole number"},
		{Args: []string{"--count", "1e999"}, WantError: "whole number"},
		{Args: []string{"--count", "NaN"}, WantError: "whole number"},
		{Args: []string{"--count", "101M"}, WantError: "100000000"},
		{Args: []string{"--count"}, WantError: "argument"},
		{Args: []string{"--duration", "0s"}, WantError: "duration"},
		{Args: []string{"--duration", "-1s"}, WantError: "duration"},
		{Args: []string{"--duration", "1000h"}, WantError: "duration"},
		{Args: []string{"--duration", "soon"}, WantError: "soon"},
		{Args: []string{"--stop-ratio", "1.1"}, WantError: "stop ratio"},
		{Args: []string{"--stop-ratio", "-0.1"}, WantError: "stop ratio"},
		{Args: []string{"--stop-ratio", "NaN"}, WantError: "stop ratio"},
		{Args: []string{"--delay-min", "0s"}, WantError: "shortest delay"},
		{Args: []string{"--delay-min", "3s"}, WantError: "longest"},
		{Args: []string{"--delay-max", "1ms"}, WantError: "longest"},
		{Args: []string{"--delay-max", "25h"}, WantError: "longest delay"},
		{Args: []string{"--tick", "-1ms"}, WantError: "tick"},
		{Args: []string{"--tick", "2h"}, WantError: "tick"},
		{Args: []string{"--json=maybe"}, WantError: "maybe"},
		{Args: []string{"--json", "--count=x"}, WantError: "whole number"},
	})
}

func TestRequests_Help(t *testing.T) {
	clitest.CheckHelp(t, "", "--count", "--json", "time.AfterFunc")
}

func parseReport(t *testing.T, s string) report {
	t.Helper()
	var r report
	if err := json.Unmarshal([]byte(s), &r); err != nil {
		t.Fatalf("%v in\n%s", err, s)
	}
	return r
}

func TestRequests_JSONConserves(t *testing.T) {
	stdout, stderr, code := clitest.Run(t, "--json", "--count", "10k", "--duration=300ms",
		"--delay-min", "20ms", "--delay-max", "200ms", "--stop-ratio", "0.5")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	r := parseReport(t, stdout)
	if r.Load.Count != 10_000 || r.Interrupted || len(r.Runs) != 2 {
		t.Fatalf("not the report of this load: %s", stdout)
	}
	for i, name := range []string{"tickless", "time.AfterFunc"} {
		run := r.Runs[i]
		if run.Name != name {
			t.Errorf("run %d is of %q, want %q", i, run.Name, name)
		}
		if run.Started != 10_000 || run.Fired+run.Stopped != 10_000 || run.Pending != 0 {
			t.Errorf("%s: started %d, fired %d, stopped %d, pending %d", name, run.Started, run.Fired, run.Stopped, run.Pending)
		}
		if run.Fired < 4_000 {
			t.Errorf("%s: only %d fired of about half", name, run.Fired)
		}
		if run.Lost != 0 || run.Early != 0 || run.FiredTwiceOrAfterStop != 0 {
			t.Errorf("%s: lost %d, early %d, wrong %d", name, run.Lost, run.Early, run.FiredTwiceOrAfterStop)
		}
		if run.Late.Max <= 0 || run.Late.P50 > run.Late.P99 || run.Late.P99 > run.Late.Max {
			t.Errorf("%s: late %+v", name, run.Late)
		}
		if runtime.GOOS == "linux" && (run.CPU == nil || *run.CPU <= 0) {
			t.Errorf("%s: no CPU time", name)
		}
	}
}

func TestRequests_Table(t *testing.T) {
	stdout, stderr, code := clitest.Run(t, "--count", "10k", "--duration", "200ms", "--delay-max", "150ms", "--tick", "1ms")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"tickless", "time.AfterFunc", "ratio", "started", "stopped in time", "fired", "lost", "early",
		"late, p50", "late, p99", "late, max", "CPU time", "10,000"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table does not show %q", want)
		}
	}
	if strings.Contains(stdout, "still pending") {
		t.Error("the table of a whole run shows timers still pending")
	}
	if !strings.Contains(stderr, "time.AfterFunc: 10,000 requests over 200ms\n") || strings.ContainsAny(stderr, "\r\x1b") {
		t.Errorf("standard error is %q", stderr)
	}
	if t.Failed() {
		t.Log(stdout)
	}
}

// This is a test of the output. run_test.go tests the results of an interrupted run.
func TestRequests_InterruptPrintsWhatWasDone(t *testing.T) {
	stdout := interrupt(t, "tickless: 100,000 requests", "--json", "--count", "100k", "--duration", "10m", "--delay-max", "500ms")
	r := parseReport(t, stdout)
	if !r.Interrupted || len(r.Runs) != 1 {
		t.Fatalf("not the report of an interrupted first run: %s", stdout)
	}
	run := r.Runs[0]
	if run.Started == 100_000 {
		t.Error("all requests were started despite the interrupt")
	}
	if run.Started != run.Fired+run.Stopped+run.Pending || run.Lost != 0 {
		t.Errorf("started %d, fired %d, stopped %d, pending %d, lost %d", run.Started, run.Fired, run.Stopped, run.Pending, run.Lost)
	}
}

// The command fails if tickless violates a guarantee.
func TestRequests_BrokenPromisesFail(t *testing.T) {
	ours := newBackends[0]
	defer func() { newBackends[0] = ours }()
	newBackends[0] = func(f flags, n int) Backend {
		return faulty{Backend: ours(f, n), start: func(i int, d time.Duration, f func()) (time.Duration, func()) {
			return d, func() {
				f()
				if i == 0 {
					f()
				}
			}
		}}
	}
	cmd := NewCommand()
	cmd.SetArgs([]string{"--json", "--count", "1k", "--duration", "50ms", "--delay-min", "10ms", "--delay-max", "20ms", "--stop-ratio", "0"})
	var stdout strings.Builder
	cmd.SetOut(&stdout)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	if err == nil || err.Error() != "FAILED: faults of tickless: fired twice or after Stop: 1" {
		t.Errorf("the error is %v", err)
	}
	if r := parseReport(t, stdout.String()); len(r.Runs) != 2 || r.Runs[0].FiredTwiceOrAfterStop != 1 {
		t.Errorf("the figures are not printed: %s", stdout.String())
	}
}

// interrupt runs the program, and sends it an interrupt when standard error contains
// want. It checks the exit code and returns the standard output.
func interrupt(t *testing.T, want string, args ...string) (stdout string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a child process cannot be sent an interrupt here")
	}
	cmd := clitest.ProgramCmd(args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	waitFor(t, stderr, want)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(stderr)
	_ = cmd.Wait() // an exit code is an error too
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d: %s", code, cli.ExitInterrupted, rest)
	}
	return out.String()
}

// waitFor reads r until the text contains want.
func waitFor(t *testing.T, r io.Reader, want string) {
	t.Helper()
	var seen strings.Builder
	buf := make([]byte, 256)
	for !strings.Contains(seen.String(), want) {
		n, err := r.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v after %q", err, seen.String())
		}
	}
}
