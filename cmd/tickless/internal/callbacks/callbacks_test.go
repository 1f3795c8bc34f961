package callbacks

import (
	"context"
	"encoding/json"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, clitest.Under(NewCommand)) }

func TestRedis_CalledWrongly(t *testing.T) {
	clitest.CheckCalledWrongly(t, "redis", []clitest.WrongCall{
		{Args: []string{"--bogus"}, Want: "--bogus"},
		{Args: []string{"more"}, Want: "no arguments"},
		{Args: []string{"--tasks", "0"}, Want: "number of tasks"},
		{Args: []string{"--tasks", "many"}, Want: "whole number"},
		{Args: []string{"--tasks", "11M"}, Want: "number of tasks"},
		{Args: []string{"--duration", "0s"}, Want: "duration"},
		{Args: []string{"--workers", "0"}, Want: "workers"},
		{Args: []string{"--concurrency", "0"}, Want: "concurrency"},
		{Args: []string{"--lease", "1ms"}, Want: "lease"},
		{Args: []string{"--handling", "1m"}, Want: "handling"},
		{Args: []string{"--patience", "0s"}, Want: "patience"},
		{Args: []string{"--cluster"}, Want: "--addr"},
		{Args: []string{"--addr", "localhost"}, Want: "HOST:PORT"},
		{Args: []string{"--addr", "localhost:1,localhost:2"}, Want: "--cluster"},
		{Args: []string{"--child"}, Want: "by hand"},
	})
}

func TestRedis_Help(t *testing.T) {
	clitest.CheckHelp(t, "redis", "--addr", "--cluster", "--tasks", "--kill", "miniredis")
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestRedis_ServerThatIsNotThere(t *testing.T) {
	addr := "127.0.0.1:" + freePort(t)
	for _, args := range [][]string{{"redis", "--addr", addr}, {"redis", "--addr", addr, "--cluster"}} {
		stdout, stderr, code := clitest.Run(t, args...)
		if code != cli.ExitFailed || stdout != "" || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, "no Redis server can be reached at "+addr) {
			t.Errorf("%v: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

// parsedReport is what the tests read of the JSON.
type parsedReport struct {
	Result struct {
		Server      string
		Interrupted bool
		Scheduled   int64
		Delivered   int64
		Duplicated  int64
		Lost        *int64
		Pending     *int64
		Early       int64
		Wrong       int64   `json:"wrongly_signed"`
		P50         float64 `json:"late_p50_ms"`
		Max         float64 `json:"late_max_ms"`
		Killed      int64   `json:"workers_killed"`
		TakenOver   int64   `json:"leases_taken_over"`
	}
}

func runProgram(t *testing.T, args ...string) parsedReport {
	t.Helper()
	stdout, stderr, code := clitest.Run(t, append([]string{"redis", "--json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var r parsedReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	return r
}

// check requires that nothing was lost, and nothing came twice but what the
// killed worker had in hand.
func check(t *testing.T, r parsedReport, tasks, killed int64) {
	t.Helper()
	x := r.Result
	if x.Interrupted || x.Scheduled != tasks || x.Delivered != tasks || x.Lost == nil || *x.Lost != 0 || x.Early != 0 || x.Wrong != 0 {
		t.Errorf("%+v", x)
	}
	if x.Killed != killed || x.Duplicated > x.TakenOver || x.P50 <= 0 || x.Max < x.P50 {
		t.Errorf("%+v", x)
	}
}

func TestRedis_KillsAWorkerAndLosesNothing(t *testing.T) {
	t.Parallel()
	// The worker has something in hand: there is no other, and more is due than it can
	// take.
	r := runProgram(t, "--tasks", "60", "--duration", "2s", "--handling", "500ms", "--concurrency", "10", "--workers", "1")
	check(t, r, 60, 1)
	if r.Result.TakenOver == 0 || r.Result.Duplicated == 0 {
		t.Errorf("the killed worker had nothing in hand: %+v", r.Result)
	}
}

func TestRedis_Table(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := clitest.Run(t, "redis", "--tasks", "1k", "--duration", "300ms", "--workers", "1", "--kill=false")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"scheduled", "delivered", "duplicated", "lost", "early", "late, p50", "late, p99", "late, max",
		"delivery", "miniredis", "1,000", "workers killed"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table does not show %q", want)
		}
	}
	if strings.Contains(stdout, "pending") || stderr != "redis: 1,000 tasks over 300ms, 1 worker processes\n" {
		t.Errorf("%s\n%q", stdout, stderr)
	}
}

func TestRedis_InterruptPrintsWhatWasDone(t *testing.T) {
	stdout := clitest.InterruptProgram(t, "redis: 1,000 tasks", "redis", "--json", "--tasks", "1k", "--duration", "10m")
	var r parsedReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	x := r.Result
	if !x.Interrupted || x.Lost != nil || x.Pending == nil || *x.Pending != x.Scheduled-x.Delivered || x.Delivered == 1000 {
		t.Errorf("%+v", x)
	}
}

// startRealRedis starts a redis-server, or skips the test.
func startRealRedis(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("there is no redis-server: see scripts/need-redis")
	}
	port := freePort(t)
	cmd := exec.Command(path, append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", ""}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return "127.0.0.1:" + port
}

// await polls until f is true.
func awaitTrue(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come true")
		}
	}
}

func TestRedis_RealServer(t *testing.T) {
	t.Parallel()
	addr := startRealRedis(t)
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	ctx := context.Background()
	awaitTrue(t, func() bool { return c.Set(ctx, "mine", 1, 0).Err() == nil })
	check(t, runProgram(t, "--addr", addr, "--tasks", "2k", "--duration", "1s"), 2000, 1)
	if keys := c.Keys(ctx, "*").Val(); len(keys) != 1 || keys[0] != "mine" {
		t.Errorf("left behind: %q", keys)
	}
	_, stderr, code := clitest.Run(t, "redis", "--addr", addr, "--cluster")
	if code != cli.ExitFailed || !strings.Contains(stderr, "without --cluster") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestRedis_RealCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector: make test runs it")
	}
	t.Parallel()
	// A cluster's bus is on another port, which the system chooses no better.
	addr := startRealRedis(t, "--cluster-enabled", "yes", "--cluster-port", freePort(t))
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	ctx := context.Background()
	awaitTrue(t, func() bool { return c.Ping(ctx).Err() == nil })
	if err := c.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, func() bool { return strings.Contains(c.ClusterInfo(ctx).Val(), "cluster_state:ok") })
	_, stderr, code := clitest.Run(t, "redis", "--addr", addr)
	if code != cli.ExitFailed || !strings.Contains(stderr, "use --cluster") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	check(t, runProgram(t, "--addr", addr, "--cluster", "--tasks", "2k", "--duration", "1s"), 2000, 1)
	if n := c.DBSize(ctx).Val(); n != 0 {
		t.Errorf("left behind: %d keys", n)
	}
}
