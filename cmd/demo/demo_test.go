package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// asProgramEnv makes the test binary run the program instead of its tests.
const asProgramEnv = "TICKLESS_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgramEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// runProgram runs the program and returns its output and exit code.
func runProgram(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs strings.Builder
	code = execute(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), code
}

func TestDemo_CalledWrongly(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-bogus"}, "-bogus"},
		{[]string{"-x"}, "-x"},
		{[]string{"bogus"}, "no arguments"},
		{[]string{"-count", "0"}, "count"},
		{[]string{"-count", "-5"}, "count"},
		{[]string{"-count", "many"}, "whole number"},
		{[]string{"-count", "1.5"}, "whole number"},
		{[]string{"-count", "1e999"}, "whole number"},
		{[]string{"-count", "NaN"}, "whole number"},
		{[]string{"-count", "101M"}, "100000000"},
		{[]string{"-count"}, "argument"},
		{[]string{"-duration", "0s"}, "duration"},
		{[]string{"-duration", "-1s"}, "duration"},
		{[]string{"-duration", "1000h"}, "duration"},
		{[]string{"-duration", "soon"}, "soon"},
		{[]string{"-stop-ratio", "1.1"}, "stop ratio"},
		{[]string{"-stop-ratio", "-0.1"}, "stop ratio"},
		{[]string{"-stop-ratio", "NaN"}, "stop ratio"},
		{[]string{"-delay-min", "0s"}, "shortest delay"},
		{[]string{"-delay-min", "3s"}, "longest"},
		{[]string{"-delay-max", "1ms"}, "longest"},
		{[]string{"-delay-max", "25h"}, "longest delay"},
		{[]string{"-tick", "-1ms"}, "tick"},
		{[]string{"-tick", "2h"}, "tick"},
		{[]string{"-json=maybe"}, "maybe"},
		{[]string{"-json", "-count=x"}, "whole number"},
	} {
		stdout, stderr, code := runProgram(t, tt.args...)
		if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: exit code %d, %q, %q", tt.args, code, stdout, stderr)
		}
	}
}

func TestDemo_Help(t *testing.T) {
	_, stderr, code := runProgram(t, "-help")
	if code != 0 || !strings.Contains(stderr, "-stop-ratio") || !strings.Contains(stderr, "time.AfterFunc") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func parseReport(t *testing.T, s string) report {
	t.Helper()
	var r report
	if err := json.Unmarshal([]byte(s), &r); err != nil {
		t.Fatalf("%v in\n%s", err, s)
	}
	return r
}

func TestDemo_JSONConserves(t *testing.T) {
	stdout, stderr, code := runProgram(t, "-json", "-count", "10k", "-duration=300ms",
		"-delay-min", "20ms", "-delay-max", "200ms", "-stop-ratio", "0.5")
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

func TestDemo_Table(t *testing.T) {
	stdout, stderr, code := runProgram(t, "-count", "10k", "-duration", "200ms", "-delay-max", "150ms", "-tick", "1ms")
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
func TestDemo_InterruptPrintsWhatWasDone(t *testing.T) {
	stdout := interrupt(t, "tickless: 100,000 requests", "-json", "-count", "100k", "-duration", "10m", "-delay-max", "500ms")
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
func TestDemo_BrokenPromisesFail(t *testing.T) {
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
	stdout, stderr, code := runProgram(t, "-json", "-count", "1k", "-duration", "50ms", "-delay-min", "10ms", "-delay-max", "20ms", "-stop-ratio", "0")
	if code != exitFailed || !strings.Contains(stderr, "FAILED: faults of tickless: fired twice or after Stop: 1\n") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if r := parseReport(t, stdout); len(r.Runs) != 2 || r.Runs[0].FiredTwiceOrAfterStop != 1 {
		t.Errorf("the figures are not printed: %s", stdout)
	}
}

// interrupt runs the program, and sends it an interrupt when standard error contains
// want. It checks the exit code and returns the standard output.
func interrupt(t *testing.T, want string, args ...string) (stdout string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a child process cannot be sent an interrupt here")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgramEnv+"=1")
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
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d: %s", code, exitInterrupted, rest)
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
