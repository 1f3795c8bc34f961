package heartbeat

import (
	"context"
	"encoding/json"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, clitest.Under(NewCommand)) }

func TestIdle_CalledWrongly(t *testing.T) {
	clitest.CheckCalledWrongly(t, "idle", []clitest.WrongCall{
		{Args: []string{"--bogus"}, Want: "--bogus"},
		{Args: []string{"now"}, Want: `"now"`},
		{Args: []string{"--conns", "-1"}, Want: "connections"},
		{Args: []string{"--conns", "many"}, Want: "whole number"},
		{Args: []string{"--conns", "2M", "--processes", "100"}, Want: "1000000"},
		{Args: []string{"--conns", "29k"}, Want: "--processes"},
		{Args: []string{"--conns", "0", "--memory", "0"}, Want: "connections"},
		{Args: []string{"--memory", "-1"}, Want: "memory"},
		{Args: []string{"--memory", "11M"}, Want: "10000000"},
		{Args: []string{"--processes", "0"}, Want: "processes"},
		{Args: []string{"--processes", "101"}, Want: "processes"},
		{Args: []string{"--conns", "3", "--processes", "4"}, Want: "processes"},
		{Args: []string{"--timeout", "0s"}, Want: "timeout"},
		{Args: []string{"--timeout", "2h"}, Want: "timeout"},
		{Args: []string{"--timeout", "soon"}, Want: "soon"},
		{Args: []string{"--heartbeat", "-1s"}, Want: "heartbeat"},
		{Args: []string{"--heartbeat", "1s", "--timeout", "1500ms"}, Want: "1.5s apart"},
		{Args: []string{"--duration", "0s"}, Want: "duration"},
		{Args: []string{"--duration", "1h", "--heartbeat", "1ms"}, Want: "--conns 8000"},
		{Args: []string{"--duration", "1h", "--heartbeat", "1ms", "--conns", "0"}, Want: "--memory 100000"},
		{Args: []string{"--patience", "0s"}, Want: "patience"},
		{Args: []string{"--silent", "1.1"}, Want: "silent"},
		{Args: []string{"--silent", "-0.1"}, Want: "silent"},
		{Args: []string{"--silent", "NaN"}, Want: "silent"},
		{Args: []string{"--child"}, Want: "by hand"},
		{Args: []string{"-json", "-conns=x"}, Want: "whole number"},
	})
}

func TestIdle_Help(t *testing.T) {
	help := clitest.CheckHelp(t, "idle", "--processes", "--json", "SetReadDeadline", "127.0.0.0/8")
	if strings.Contains(help, "--child") {
		t.Error("the help shows a flag that is not for use by hand")
	}
}

func parse(t *testing.T, s string) (r struct {
	Interrupted bool         `json:"interrupted"`
	Config      parsedConfig `json:"config"`
	TCP         []shown      `json:"tcp"`
	Memory      []shown      `json:"in_memory"`
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &r); err != nil {
		t.Fatalf("%v in\n%s", err, s)
	}
	return r
}

// parsedConfig is what the tests read of the configuration.
type parsedConfig struct {
	Conns     int     `json:"conns"`
	Processes int     `json:"processes"`
	TimeoutMS float64 `json:"timeout_ms"`
}

// smallLoad is small. On a busy machine heartbeats may come too late for it, which
// is no fault of a side's; and the evictions are waited for as long as it takes.
var smallLoad = []string{"idle", "--timeout", "800ms", "--heartbeat", "200ms", "--duration", "300ms", "--silent", "0.2", "--patience", "1h"}

// check requires that all that fell silent were evicted, and none too early.
func check(t *testing.T, runs []shown, conns int, names ...string) {
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
	serverNames = []string{"tickless", "SetReadDeadline", "time.Timer.Reset"}
	loopNames   = []string{"tickless", "time.Timer.Reset"}
)

func TestIdle_JSON(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := clitest.Run(t, append(smallLoad, "-json", "-conns=200", "-memory=2k")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	r := parse(t, stdout)
	if r.Interrupted || r.Config.Conns != 200 || r.Config.TimeoutMS != 800 {
		t.Fatalf("not the report of this load: %s", stdout)
	}
	check(t, r.TCP, 200, serverNames...)
	check(t, r.Memory, 2000, loopNames...)
	for _, run := range r.Memory {
		if runtime.GOOS == "linux" && run.OwnCPUMS == nil {
			t.Errorf("%s: the load's own CPU time is missing", run.Name)
		}
	}
}

func TestIdle_Processes(t *testing.T) {
	skipWithoutLoopbackAddresses(t)
	t.Parallel()
	stdout, stderr, code := clitest.Run(t, append(smallLoad, "--json", "--conns", "200", "--processes", "3", "--memory", "0")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	r := parse(t, stdout)
	if r.Config.Processes != 3 || len(r.Memory) != 0 {
		t.Fatalf("not the report of this load: %s", stdout)
	}
	check(t, r.TCP, 200, serverNames...)
}

func TestIdle_Table(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector: make test runs it")
	}
	t.Parallel()
	stdout, stderr, code := clitest.Run(t, append(smallLoad, "--conns", "100", "--memory", "1k")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range append(serverNames, "100 connections over TCP", "1,000 connections in memory", "20% fall silent", "timeout 800ms",
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

// skipWithoutLoopbackAddresses skips a test of several processes where only
// 127.0.0.1 is there without being set up.
func skipWithoutLoopbackAddresses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 and so on have to be set up here")
	}
}

// endless is a load that goes on until it is interrupted, while connections fall
// silent and are evicted all the time.
var endless = []string{"--timeout", "300ms", "--heartbeat", "50ms", "--duration", "30m", "--silent", "1"}

func TestIdle_InterruptPrintsWhatWasDone(t *testing.T) {
	for name, args := range map[string][]string{
		"TCP":       {"--conns", "100", "--memory", "0"},
		"memory":    {"--conns", "0", "--memory", "500"},
		"processes": {"--conns", "100", "--processes", "2", "--memory", "0"},
		// Nothing of the load in memory may stand in the children's way.
		"processes, then memory": {"--conns", "100", "--processes", "2", "--memory", "500"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "processes") {
				skipWithoutLoopbackAddresses(t)
			}
			t.Parallel()
			// The line comes when all processes are under way.
			stdout := clitest.InterruptProgram(t, "tickless: ", append(append([]string{"idle", "--json"}, endless...), args...)...)
			r := parse(t, stdout)
			runs := append(r.TCP, r.Memory...)
			if !r.Interrupted || len(runs) != 1 {
				t.Fatalf("not the report of an interrupted first run: %s", stdout)
			}
			if run := runs[0]; !run.Interrupted || run.Early != 0 || run.Twice != 0 {
				t.Errorf("%+v", run)
			}
		})
	}
}

// endlessConfig is an endless load too.
var endlessConfig = config{Timeout: 300 * time.Millisecond, Heartbeat: 50 * time.Millisecond, Duration: 5 * time.Minute,
	Silent: 1, Patience: time.Hour, Seed: 1}

// checkCutShort requires that a tally is of a part of an endless load.
func checkCutShort(t *testing.T, tally *tally, conns, heartbeats int) {
	t.Helper()
	if !tally.Interrupted || tally.Conns != conns || tally.Heartbeats < int64(heartbeats) || tally.Early != 0 || tally.Twice != 0 {
		t.Errorf("%+v", tally)
	}
	if tally.Evicted > int64(tally.Silent) || tally.Evicted+tally.Missed != int64(tally.Silent) {
		t.Errorf("%d fell silent, %d were evicted, %d missed", tally.Silent, tally.Evicted, tally.Missed)
	}
}

// seenTransport lets a test look at the run.
type seenTransport struct {
	transport
	run *run
}

func (s *seenTransport) open(ctx context.Context, r *run) error {
	s.run = r
	return s.transport.open(ctx, r)
}

// A run that is cut short tells what was done until then: here, the first
// evictions.
func TestIdlePlan_CutShort(t *testing.T) {
	plan := newPlan(endlessConfig, 200)
	cut := func(name string, tr transport) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			seen, sentBefore := &seenTransport{transport: tr}, 0
			tally, err := plan.run(ctx, seen, func(sent int64) {
				if ctx.Err() == nil && seen.run.settled.Load() > 0 {
					sentBefore = int(sent)
					cancel()
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			checkCutShort(t, tally, 200, sentBefore)
			if tally.Evicted == 0 || sentBefore == 0 {
				t.Errorf("%d evicted, %d heartbeats before", tally.Evicted, sentBefore)
			}
		})
	}
	for _, newServer := range servers {
		server := newServer()
		cut(server.Name()+"/TCP", &tcpTransport{address: address(1), side: server})
	}
	for _, newLoop := range loops {
		loop := newLoop()
		cut(loop.Name()+"/memory", &memoryTransport{side: loop})
	}
}

// Children that are told to stop hand in what they have: here, when all of them
// are under way.
func TestIdleChildren_CutShort(t *testing.T) {
	skipWithoutLoopbackAddresses(t)
	t.Setenv(clitest.AsProgram, "1")
	c := endlessConfig
	c.Conns, c.Processes = 100, 3
	for _, newServer := range servers {
		ctx, cancel := context.WithCancel(t.Context())
		children := &children{config: c, side: newServer().Name()}
		children.start = func(beats int64) func(int64) {
			return func(sent int64) {
				if !slices.Contains(children.sent, 0) { // called with the lock held
					cancel()
				}
			}
		}
		tally, err := children.run(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		checkCutShort(t, tally, 100, 3)
	}
}

// One that fails ends the others, and says why.
func TestIdleChildren_Failure(t *testing.T) {
	t.Setenv(clitest.AsProgram, "1")
	c := endlessConfig
	c.Conns, c.Processes = 2, 2
	_, err := (&children{config: c, side: "tortoise"}).run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "process ") || !strings.Contains(err.Error(), `no side "tortoise"`) {
		t.Errorf("the error is %v", err)
	}
}

func TestIdlePlan(t *testing.T) {
	c := config{Conns: 1000, Processes: 3, Timeout: 2 * time.Second, Heartbeat: time.Second, Duration: 3 * time.Second, Silent: 0.3, Seed: 7}
	p, again := newPlan(c, 1000), newPlan(c, 1000)
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

// blindLoop evicts nobody.
type blindLoop struct{ noLoop }

func (*blindLoop) Name() string { return "tickless" }

// Evictions of our own that do not come are a failure, and not only a figure.
func TestIdle_BrokenPromisesFail(t *testing.T) {
	ours := loops[0]
	defer func() { loops[0] = ours }()
	loops[0] = func() loop { return new(blindLoop) }
	cmd := NewCommand()
	cmd.SetArgs([]string{"--json", "--conns", "0", "--memory", "100", "--silent", "1", "--timeout", "50ms", "--heartbeat", "20ms",
		"--duration", "20ms", "--patience", "1ms"})
	var stdout strings.Builder
	cmd.SetOut(&stdout)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	if err == nil || err.Error() != "FAILED: timers of tickless missed: 100" {
		t.Errorf("the error is %v", err)
	}
	if r := parse(t, stdout.String()); len(r.Memory) != 2 || r.Memory[0].Missed != 100 {
		t.Errorf("the figures are not printed: %s", stdout.String())
	}
}

// lateLoop evicts, when all heartbeats are sent, first those that go on, as happens if
// evictions come later than the timeout, and then those that fell silent.
type lateLoop struct {
	noLoop
	r *run
}

func (*lateLoop) Name() string { return "late" }

func (l *lateLoop) Open(r *run) error {
	l.r = r
	go func() {
		for !r.over.Load() {
			time.Sleep(time.Millisecond)
		}
		for _, silent := range []bool{false, true} {
			for i := range r.plan.silent {
				if r.plan.silent[i] == silent {
					r.evicted(i, 0)
				}
			}
		}
	}()
	return l.noLoop.Open(r)
}

// Connections that are evicted because the clients have nothing more to send are no
// connections whose heartbeats came late.
func TestIdlePlan_EvictionsAfterTheLastHeartbeat(t *testing.T) {
	c := config{Timeout: 20 * time.Millisecond, Heartbeat: 10 * time.Millisecond, Duration: 20 * time.Millisecond, Silent: 0.3,
		Patience: time.Hour, Seed: 1}
	p := newPlan(c, 100)
	r, err := p.run(t.Context(), &memoryTransport{side: new(lateLoop)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Unpunctual != 0 || r.Evicted != int64(p.silentOnes()) || r.Missed != 0 || r.Twice != 0 {
		t.Errorf("%+v", r)
	}
}

// The memory over TCP is of the connections that there still are, in memory of all.
func TestIdlePlan_MemoryIsOfWhatIsHeld(t *testing.T) {
	c := config{Timeout: 300 * time.Millisecond, Heartbeat: 100 * time.Millisecond, Duration: 50 * time.Millisecond, Silent: 0.5,
		Patience: time.Hour, Seed: 1}
	p := newPlan(c, 50)
	over, err := p.run(t.Context(), &tcpTransport{address: address(1), side: new(ticklessServer)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if over.Held > 50-int(over.Evicted) {
		t.Errorf("the memory is said to be of %d connections: %+v", over.Held, over)
	}
	in, err := p.run(t.Context(), &memoryTransport{side: new(ticklessLoop)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if in.Held != 50 {
		t.Errorf("the memory is said to be of %d connections: %+v", in.Held, in)
	}
}
