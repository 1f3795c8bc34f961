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
)

// asProgram makes the test binary behave as the program itself, so that tests
// see exit codes and signals as users do.
const asProgram = "TICKLESS_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// runProgram returns what the program printed and its exit code.
func runProgram(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := program(args...)
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

// A wrongCall is a mistake in how the program is called.
type wrongCall struct {
	args []string
	want string // part of the line that tells of it
}

// checkCalledWrongly requires one line on standard error, and the exit code, for
// each of the mistakes.
func checkCalledWrongly(t *testing.T, command string, calls []wrongCall) {
	for _, tt := range calls {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			stdout, stderr, code := runProgram(t, arguments(command, tt.args...)...)
			if code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if stdout != "" {
				t.Errorf("printed %q to standard output", stdout)
			}
			if strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
				t.Errorf("want one line on standard error, got %q", stderr)
			}
			if !strings.HasPrefix(stderr, "tickless: ") || !strings.Contains(stderr, tt.want) {
				t.Errorf("the line does not tell of %q: %q", tt.want, stderr)
			}
		})
	}
}

// checkHelp requires of a command's help that it mentions certain words, and
// returns it.
func checkHelp(t *testing.T, command string, wants ...string) (help string) {
	t.Helper()
	for _, flag := range []string{"--help", "-help", "-h"} {
		stdout, stderr, code := runProgram(t, arguments(command, flag)...)
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

// interruptProgram runs the program and interrupts it: see interrupt.
func interruptProgram(t *testing.T, want string, args ...string) (stdout string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a child process cannot be sent an interrupt here")
	}
	return interrupt(t, program(args...), want, func(p *os.Process) error { return p.Signal(os.Interrupt) })
}

// interrupt starts cmd, sends it an interrupt once it has written want to
// standard error, requires the exit code of that, and returns what it printed.
func interrupt(t *testing.T, cmd *exec.Cmd, want string, send func(*os.Process) error) (stdout string) {
	t.Helper()
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
	if err := send(cmd.Process); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(stderr)
	_ = cmd.Wait() // an exit code is an error too
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d: %s", code, exitInterrupted, rest)
	}
	return out.String()
}

func TestProgram_CalledWrongly(t *testing.T) {
	checkCalledWrongly(t, "", []wrongCall{
		{[]string{"--bogus"}, "--bogus"},
		{[]string{"-x"}, "'x'"},
		{[]string{"bogus"}, `unknown command "bogus"`},
		{[]string{"--count", "0"}, "count"},
		{[]string{"--count", "-5"}, "count"},
		{[]string{"--count", "many"}, "whole number"},
		{[]string{"--count", "1.5"}, "whole number"},
		{[]string{"--count", "1e999"}, "whole number"},
		{[]string{"--count", "NaN"}, "whole number"},
		{[]string{"--count", "101M"}, "100000000"},
		{[]string{"--count"}, "argument"},
		{[]string{"--duration", "0s"}, "duration"},
		{[]string{"--duration", "-1s"}, "duration"},
		{[]string{"--duration", "1000h"}, "duration"},
		{[]string{"--duration", "soon"}, "soon"},
		{[]string{"--stop-ratio", "1.1"}, "stop ratio"},
		{[]string{"--stop-ratio", "-0.1"}, "stop ratio"},
		{[]string{"--stop-ratio", "NaN"}, "stop ratio"},
		{[]string{"--delay-min", "0s"}, "shortest delay"},
		{[]string{"--delay-min", "3s"}, "longest"},
		{[]string{"--delay-max", "1ms"}, "longest"},
		{[]string{"--delay-max", "25h"}, "longest delay"},
		{[]string{"--tick", "-1ms"}, "tick"},
		{[]string{"--tick", "2h"}, "tick"},
		{[]string{"--executor", "thread"}, "pool, goroutine, inline"},
		{[]string{"--json=maybe"}, "maybe"},
		{[]string{"-json", "-count=x"}, "whole number"},
	})
}

func TestProgram_Help(t *testing.T) {
	checkHelp(t, "", "--count", "--json", "time.AfterFunc", "purgatory")
}

// parsedReport is what the tests read of the JSON.
type parsedReport struct {
	Count       int64 `json:"count"`
	Interrupted bool  `json:"interrupted"`
	Runs        []struct {
		Name    string   `json:"name"`
		Started int64    `json:"started"`
		Fired   int64    `json:"fired"`
		Stopped int64    `json:"stopped"`
		Pending int64    `json:"pending"`
		Lost    *int64   `json:"lost"`
		Early   *int64   `json:"early"`
		Wrong   *int64   `json:"twice_or_after_stop"`
		MaxMS   float64  `json:"late_max_ms"`
		CPUMS   *float64 `json:"cpu_ms"`
		Held    *struct {
			Timers        int     `json:"timers"`
			BytesPerTimer float64 `json:"heap_bytes_per_timer"`
		} `json:"held"`
	} `json:"runs"`
}

func parseReport(t *testing.T, s string) parsedReport {
	t.Helper()
	var r parsedReport
	if err := json.Unmarshal([]byte(s), &r); err != nil {
		t.Fatalf("%v in\n%s", err, s)
	}
	return r
}

func TestProgram_JSONConserves(t *testing.T) {
	for _, executor := range []string{"pool", "goroutine", "inline"} {
		t.Run(executor, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := runProgram(t, "-json", "-count", "10k", "-duration=300ms",
				"--delay-min", "20ms", "--delay-max", "200ms", "--stop-ratio", "0.5", "--executor", executor)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			r := parseReport(t, stdout)
			if r.Count != 10_000 || r.Interrupted || len(r.Runs) != 2 {
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
				if *run.Lost != 0 || *run.Early != 0 || *run.Wrong != 0 {
					t.Errorf("%s: lost %d, early %d, wrong %d", name, *run.Lost, *run.Early, *run.Wrong)
				}
				if run.MaxMS <= 0 {
					t.Errorf("%s: nothing was late at all", name)
				}
				if runtime.GOOS == "linux" && (run.CPUMS == nil || *run.CPUMS <= 0) {
					t.Errorf("%s: no CPU time", name)
				}
				if run.Held == nil || run.Held.Timers != minHeld || run.Held.BytesPerTimer < 16 || run.Held.BytesPerTimer > 500 {
					t.Errorf("%s: held %+v", name, run.Held)
				}
			}
		})
	}
}

func TestProgram_Table(t *testing.T) {
	stdout, stderr, code := runProgram(t, "--count", "10k", "--duration", "200ms", "--delay-max", "150ms", "--tick", "1ms")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"tickless", "time.AfterFunc", "ratio", "started", "stopped in time", "fired", "lost", "early",
		"late, p50", "late, p99", "late, max", "CPU time", "live heap a pending timer", "GC cycles", "wake-ups", "context switches", "10,000"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table does not show %q", want)
		}
	}
	if strings.Contains(stdout, "still pending") {
		t.Error("the table of a whole run shows timers still pending")
	}
	// Standard error is no terminal here, so a line a side and no bar.
	if !strings.Contains(stderr, "time.AfterFunc: 10,000 requests over 200ms\n") || strings.ContainsAny(stderr, "\r\x1b") {
		t.Errorf("standard error is %q", stderr)
	}
	if t.Failed() {
		t.Log(stdout)
	}
}

// What a run has done by the time that it is interrupted is package load's to
// test: see there.
func TestProgram_InterruptPrintsWhatWasDone(t *testing.T) {
	stdout := interruptProgram(t, "tickless: 100,000 requests", "--json", "--count", "100k", "--duration", "10m", "--delay-max", "500ms")
	r := parseReport(t, stdout)
	if !r.Interrupted || len(r.Runs) != 1 {
		t.Fatalf("not the report of an interrupted first run: %s", stdout)
	}
	run := r.Runs[0]
	if run.Started == 100_000 {
		t.Error("the load was not cut short")
	}
	if run.Started != run.Fired+run.Stopped+run.Pending || *run.Lost != 0 {
		t.Errorf("started %d, fired %d, stopped %d, pending %d, lost %d", run.Started, run.Fired, run.Stopped, run.Pending, *run.Lost)
	}
}

// waitFor reads r until want has come.
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

func TestCount(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int
		text string
	}{
		{"1", 1, "1"},
		{"5000", 5000, "5k"},
		{"10k", 10_000, "10k"},
		{"10K", 10_000, "10k"},
		{"1.5M", 1_500_000, "1500k"},
		{"1_000_000", 1_000_000, "1M"},
		{"-3", -3, "-3"},
		{"0", 0, "0"},
	} {
		var c count
		if err := c.Set(tt.in); err != nil || int(c) != tt.want || c.String() != tt.text {
			t.Errorf("%q is %d (%q), %v, want %d (%q)", tt.in, int(c), c.String(), err, tt.want, tt.text)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}
