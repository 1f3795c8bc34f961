package main

import (
	"encoding/json"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestIdle_CalledWrongly(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string // part of the line
	}{
		{[]string{"--bogus"}, "--bogus"},
		{[]string{"now"}, `"now"`},
		{[]string{"--conns", "-1"}, "connections"},
		{[]string{"--conns", "many"}, "whole number"},
		{[]string{"--conns", "2M", "--processes", "100"}, "1000000"},
		{[]string{"--conns", "29k"}, "--processes"},
		{[]string{"--conns", "0", "--memory", "0"}, "connections"},
		{[]string{"--memory", "-1"}, "memory"},
		{[]string{"--memory", "11M"}, "10000000"},
		{[]string{"--processes", "0"}, "processes"},
		{[]string{"--processes", "101"}, "processes"},
		{[]string{"--conns", "3", "--processes", "4"}, "processes"},
		{[]string{"--timeout", "0s"}, "timeout"},
		{[]string{"--timeout", "2h"}, "timeout"},
		{[]string{"--timeout", "soon"}, "soon"},
		{[]string{"--heartbeat", "-1s"}, "heartbeat"},
		{[]string{"--heartbeat", "1s", "--timeout", "1500ms"}, "1.5s apart"},
		{[]string{"--duration", "0s"}, "duration"},
		{[]string{"--duration", "1h", "--heartbeat", "1ms"}, "100000000 heartbeats"},
		{[]string{"--silent", "1.1"}, "silent"},
		{[]string{"--silent", "-0.1"}, "silent"},
		{[]string{"--silent", "NaN"}, "silent"},
		{[]string{"--side", "tortoise"}, "by hand"},
		{[]string{"--side", "tickless", "--host", "0"}, "by hand"},
		{[]string{"-json", "-conns=x"}, "whole number"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			stdout, stderr, code := runProgram(t, append([]string{"idle"}, tt.args...)...)
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

func TestIdle_Help(t *testing.T) {
	for _, flag := range []string{"--help", "-help", "-h"} {
		stdout, stderr, code := runProgram(t, "idle", flag)
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit code %d, standard error %q", flag, code, stderr)
		}
		for _, want := range []string{"Examples:", "--processes", "--json", "SetReadDeadline", "127.0.0.0/8"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s does not mention %s", flag, want)
			}
		}
		if strings.Contains(stdout, "--side") {
			t.Errorf("%s shows a flag that is not for use by hand", flag)
		}
	}
}

func parseIdle(t *testing.T, s string) (r struct {
	Interrupted bool        `json:"interrupted"`
	Config      parsedIdle  `json:"config"`
	TCP         []idleShown `json:"tcp"`
	Memory      []idleShown `json:"in_memory"`
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &r); err != nil {
		t.Fatalf("%v in\n%s", err, s)
	}
	return r
}

// parsedIdle is what the tests read of the configuration.
type parsedIdle struct {
	Conns     int     `json:"conns"`
	Processes int     `json:"processes"`
	TimeoutMS float64 `json:"timeout_ms"`
}

// idleLoad is small. On a busy machine heartbeats may come too late for it, which
// is no fault of a side's.
var idleLoad = []string{"idle", "--timeout", "800ms", "--heartbeat", "200ms", "--duration", "300ms", "--silent", "0.2"}

// checkIdle requires that all that fell silent were evicted, and none too early.
func checkIdle(t *testing.T, runs []idleShown, conns int, names ...string) {
	t.Helper()
	if len(runs) != len(names) {
		t.Fatalf("%d runs, want %q", len(runs), names)
	}
	for i, r := range runs {
		if r.Name != names[i] || r.Conns != conns || r.Interrupted {
			t.Errorf("run %d is %q with %d connections, want %q with %d", i, r.Name, r.Conns, names[i], conns)
		}
		if r.Silent < conns/10 || r.Silent > conns/3 || r.Evicted > int64(r.Silent) || r.Evicted+r.Missed != int64(r.Silent) {
			t.Errorf("%s: %d of %d fell silent, %d were evicted, %d missed", r.Name, r.Silent, conns, r.Evicted, r.Missed)
		}
		if r.Early != 0 || r.Missed != 0 || r.Twice != 0 {
			t.Errorf("%s: early %d, missed %d, twice %d", r.Name, r.Early, r.Missed, r.Twice)
		}
		if r.Heartbeats < int64(4*conns) || r.LateMax <= 0 || r.LateP50 > r.LateMax {
			t.Errorf("%s: %+v", r.Name, r)
		}
		if runtime.GOOS == "linux" && r.CPUMS == nil {
			t.Errorf("%s: no CPU time", r.Name)
		}
	}
}

var (
	idleServerNames = []string{"tickless", "SetReadDeadline", "time.Timer.Reset"}
	idleLoopNames   = []string{"tickless", "time.Timer.Reset"}
)

func TestIdle_JSON(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := runProgram(t, append(idleLoad, "-json", "-conns=200", "-memory=2k")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	r := parseIdle(t, stdout)
	if r.Interrupted || r.Config.Conns != 200 || r.Config.TimeoutMS != 800 {
		t.Fatalf("not the report of this load: %s", stdout)
	}
	checkIdle(t, r.TCP, 200, idleServerNames...)
	checkIdle(t, r.Memory, 2000, idleLoopNames...)
	for _, run := range r.Memory {
		if runtime.GOOS == "linux" && run.OwnCPUMS == nil {
			t.Errorf("%s: the load's own CPU time is missing", run.Name)
		}
	}
}

func TestIdle_Processes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("has no addresses 127.0.0.2 and so on without being set up")
	}
	t.Parallel()
	stdout, stderr, code := runProgram(t, append(idleLoad, "--json", "--conns", "200", "--processes", "3", "--memory", "0")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	r := parseIdle(t, stdout)
	if r.Config.Processes != 3 || len(r.Memory) != 0 {
		t.Fatalf("not the report of this load: %s", stdout)
	}
	checkIdle(t, r.TCP, 200, idleServerNames...)
}

func TestIdle_Table(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := runProgram(t, append(idleLoad, "--conns", "100", "--memory", "1k")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range append(idleServerNames, "100 connections over TCP", "1,000 connections in memory", "20% fall silent", "timeout 800ms",
		"ratio", "heartbeats", "fell silent", "evicted", "early", "missed", "late, p99", "CPU time of the heartbeats", "memory a connection") {
		if !strings.Contains(stdout, want) {
			t.Errorf("the tables do not show %q", want)
		}
	}
	// Standard error is no terminal here, so a line a side and no bar.
	if !strings.Contains(stderr, "SetReadDeadline: 100 connections, ") || strings.ContainsAny(stderr, "\r\x1b") {
		t.Errorf("standard error is %q", stderr)
	}
	if t.Failed() {
		t.Log(stdout)
	}
}

func TestIdle_InterruptPrintsWhatWasDone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a child process cannot be sent an interrupt here")
	}
	for name, args := range map[string][]string{
		"TCP":       {"--conns", "300", "--memory", "0"},
		"memory":    {"--conns", "0", "--memory", "3k"},
		"processes": {"--conns", "300", "--processes", "2", "--memory", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "processes" && runtime.GOOS != "linux" {
				t.Skip("has no addresses 127.0.0.2 and so on without being set up")
			}
			t.Parallel()
			cmd := program(append([]string{"idle", "--json", "--timeout", "300ms", "--heartbeat", "50ms", "--duration", "1m", "--silent", "1"}, args...)...)
			var out strings.Builder
			cmd.Stdout = &out
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill() }()
			waitFor(t, stderr, "tickless: ")
			time.Sleep(3 * time.Second) // some fall silent, some are evicted
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, stderr)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
				t.Errorf("exit code %d, want %d", code, exitInterrupted)
			}
			r := parseIdle(t, out.String())
			runs := append(r.TCP, r.Memory...)
			if !r.Interrupted || len(runs) != 1 {
				t.Fatalf("not the report of an interrupted first run: %s", out.String())
			}
			run := runs[0]
			if !run.Interrupted || run.Heartbeats == 0 || run.Evicted == 0 || run.Early != 0 || run.Twice != 0 || run.Silent == run.Conns {
				t.Errorf("%+v", run)
			}
		})
	}
}

func TestIdlePlan(t *testing.T) {
	c := idleConfig{Conns: 1000, Processes: 3, Timeout: 2 * time.Second, Heartbeat: time.Second, Duration: 3 * time.Second, Silent: 0.3, Seed: 7}
	p, again := newIdlePlan(c, 1000), newIdlePlan(c, 1000)
	if len(p.beats) != len(again.beats) || p.beats[500] != again.beats[500] {
		t.Error("the same seed draws another load")
	}
	last := make([]time.Duration, 1000)
	for i, b := range p.beats {
		if i > 0 && b.at < p.beats[i-1].at {
			t.Fatal("not by moment")
		}
		if gap := b.at - last[b.conn]; gap > 1500*time.Millisecond {
			t.Fatalf("heartbeats of a connection lie %v apart", gap)
		}
		last[b.conn] = b.at
	}
	for i, silent := range p.silent {
		if silent && last[i] >= c.Duration || !silent && last[i] < c.span()-1500*time.Millisecond {
			t.Errorf("connection %d, silent %v, has its last heartbeat at %v", i, silent, last[i])
		}
	}
	if n := p.silentOnes(); n < 200 || n > 400 {
		t.Errorf("%d of 1000 fall silent, want about 300", n)
	}
	sum := 0
	for i := range c.Processes {
		sum += c.of(i).Conns
	}
	if sum != c.Conns {
		t.Errorf("the processes have %d connections together", sum)
	}
}
