package callbacks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/cmd/tickless/internal/cli"
	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
)

func TestMain(m *testing.M) { clitest.Main(m, clitest.Under(NewCommand)) }

func TestCallbacks_CalledWrongly(t *testing.T) {
	clitest.CheckCalledWrongly(t, "callbacks", []clitest.WrongCall{
		{Args: []string{"--bogus"}, Want: "--bogus"},
		{Args: []string{"more"}, Want: "no arguments"},
		{Args: []string{"--tasks", "0"}, Want: "number of tasks"},
		{Args: []string{"--tasks", "many"}, Want: "whole number"},
		{Args: []string{"--tasks", "11M"}, Want: "number of tasks"},
		{Args: []string{"--duration", "0s"}, Want: "duration"},
		{Args: []string{"--workers", "-1"}, Want: "workers"},
		{Args: []string{"--concurrency", "0"}, Want: "concurrency"},
		{Args: []string{"--lease", "1ms"}, Want: "lease"},
		{Args: []string{"--handling", "1m"}, Want: "handling"},
		{Args: []string{"--patience", "0s"}, Want: "patience"},
		{Args: []string{"--kills", "-1"}, Want: "kills"},
		{Args: []string{"--cluster"}, Want: "--redis"},
		{Args: []string{"--cluster", "--redis", "start"}, Want: "--redis"},
		{Args: []string{"--redis", "start", "--dir", "data"}, Want: "not both"},
		{Args: []string{"--workers", "2"}, Want: "one process at a time"},
		{Args: []string{"--redis", "http://localhost"}, Want: "redis://localhost:6379"},
		{Args: []string{"--redis", "redis://:se cret@h"}, Want: "the URL cannot be read"},
		{Args: []string{"--redis", "local host"}, Want: "redis://localhost:6379"},
		{Args: []string{"--child"}, Want: "by hand"},
	})
}

func TestCallbacks_Help(t *testing.T) {
	clitest.CheckHelp(t, "callbacks", "--dir", "--redis", "--cluster", "--tasks", "--kills", "miniredis")
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

func TestCallbacks_ServerThatIsNotThere(t *testing.T) {
	const addr = "127.0.0.1:1"
	for _, args := range [][]string{
		{"callbacks", "--redis", addr},
		{"callbacks", "--redis", "redis://user:secret@" + addr, "--cluster"},
		{"callbacks", "--redis", "redis://:secret@" + addr + "?addr=" + addr, "--cluster"},
	} {
		stdout, stderr, code := clitest.Run(t, args...)
		if code != cli.ExitFailed || stdout != "" || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, "no Redis server can be reached at redis://"+addr) || strings.Contains(stderr, "secret") {
			t.Errorf("%v: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

// parsedReport is what the tests read of the JSON.
type parsedReport struct {
	Result struct {
		Store       string
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
		Killed      []kill  `json:"killed"`
		TakenOver   *int64  `json:"leases_taken_over"`
		Left        *int64  `json:"left_in_the_store"`
	}
}

func runProgram(t *testing.T, args ...string) parsedReport {
	t.Helper()
	stdout, stderr, code := clitest.Run(t, append([]string{"callbacks", "--json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var r parsedReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	return r
}

// lease is long enough for a worker that is alive to keep its leases on a machine that does
// much else. One that has to give up a lease interrupts the call, and makes it again.
const lease = "5s"

// check requires that nothing was lost, and nothing came twice but what the
// killed worker had in hand.
func check(t *testing.T, r parsedReport, tasks int64, kills int) {
	t.Helper()
	x := r.Result
	if x.Interrupted || x.Scheduled != tasks || x.Delivered != tasks || x.Lost == nil || *x.Lost != 0 || x.Early != 0 || x.Wrong != 0 {
		t.Errorf("%+v", x)
	}
	if x.Left == nil || *x.Left != 0 || x.TakenOver == nil {
		t.Fatalf("what is left in the store: %+v", x)
	}
	if len(x.Killed) != kills || x.Duplicated > *x.TakenOver || x.P50 <= 0 || x.Max < x.P50 {
		t.Errorf("%d taken over: %+v", *x.TakenOver, x)
	}
}

// A process is killed while it schedules, and while it has calls in hand: there is no
// other, and more is due than it can take.
func TestCallbacks_KillsAndLosesNothing(t *testing.T) {
	t.Parallel()
	for _, where := range [][]string{{}, {"--redis", "in-process", "--workers", "1"}} {
		t.Run(strings.Join(where, " "), func(t *testing.T) {
			t.Parallel()
			r := runProgram(t, append(where, "--tasks", "600", "--duration", "1s", "--handling", "50ms", "--concurrency", "10", "--kills", "2", "--lease", lease)...)
			check(t, r, 600, 2)
			if r.Result.Killed[1].Calls == 0 || *r.Result.TakenOver == 0 {
				t.Errorf("the process that was killed had nothing in hand: %+v", r.Result)
			}
		})
	}
}

func TestCallbacks_Table(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	stdout, stderr, code := clitest.Run(t, "callbacks", "--dir", dir, "--tasks", "1k", "--duration", "300ms", "--kills", "0")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"scheduled, acknowledged", "delivered", "lost", "left in the store", "more than once", "early",
		"late, p50", "late, p99", "late, max", "delivery", "directory " + dir, "1,000", "processes killed", "Nothing was lost"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table does not show %q", want)
		}
	}
	if strings.Contains(stdout, "pending") || stderr != "callbacks: 1,000 tasks over 300ms, worker processes: 1\n" {
		t.Errorf("%s\n%q", stdout, stderr)
	}
	// The directory stays, and is somebody's from now on.
	stdout, stderr, code = clitest.Run(t, "callbacks", "--dir", dir)
	if code != cli.ExitFailed || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "not empty") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

// The words say no more than is known: which process had the calls is not, if there are
// several, and tasks were given out again only if leases have run out.
func TestStory(t *testing.T) {
	c := config{Lease: time.Second, Patience: 20 * time.Second, Workers: 1}
	several := c
	several.Workers = 3
	cut := c // short
	cut.Tasks, cut.Kills = 2000, 3
	for _, x := range []struct {
		config config
		result result
		want   string
	}{
		{c, result{Left: &left{}}, "Nothing was lost, and nothing came early.\n"},
		{c, result{Killed: []kill{{1, 5, true}, {2, 0, false}, {3, 1, false}}, Left: &left{Crashed: 1218}},
			"Process 1 was killed while it was scheduling; the next one scheduled the rest.\n" +
				"Process 2 was killed with no call under way.\n" +
				"Process 3 was killed with 1 call under way.\n" +
				"What was killed had tasks that it had not reported: leases of 1s that ran out, and whose tasks were given out again: 1,218.\n" +
				"Nothing was lost, and nothing came early.\n"},
		{several, result{Killed: []kill{{4, 2, false}}, Left: &left{}},
			"Process 4 was killed when the 3 processes had 2 calls under way.\n" +
				"No lease ran out: what was killed had no task.\n" +
				"Nothing was lost, and nothing came early.\n"},
		{c, result{Missing: 26, Early: 1, Refused: 2, Left: &left{Pending: 30, Running: 40, Dead: 9}},
			"FAILED: tasks not delivered 20s after the last was due or acknowledged, or the last kill: 26; tasks that came early: 1; calls wrongly signed: 2; " +
				"tasks still to be delivered in the store: 70; dead tasks in the store: 9.\n"},
		{c, result{}, "FAILED: the store could not be opened at the end.\n"},
		{cut, result{Scheduled: 1500, Killed: []kill{{5, 1, true}}, Left: &left{Crashed: 1}},
			"Process 5 was killed while it was scheduling; the next one scheduled the rest.\n" +
				"What was killed had tasks that it had not reported: leases of 1s that ran out, and whose tasks were given out again: 1.\n" +
				"FAILED: tasks not scheduled: 500; processes not killed: 2.\n"},
		{c, result{Interrupted: true}, ""},
		{cut, result{Interrupted: true}, ""},
	} {
		if got := story(x.config, &x.result); got != x.want {
			t.Errorf("%+v:\n%s\nshould be\n%s", x.result, got, x.want)
		}
	}
}

// What a kill has held up is not lost, nor what was scheduled late.
func TestConfig_End(t *testing.T) {
	c := config{Duration: 5 * time.Second, Patience: 20 * time.Second}
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, x := range []struct{ lastKill, lastAcknowledged, want time.Time }{
		{time.Time{}, base, base.Add(25 * time.Second)},
		{base.Add(3 * time.Second), base, base.Add(25 * time.Second)},
		{base.Add(30 * time.Second), base, base.Add(50 * time.Second)},
		{base.Add(30 * time.Second), base.Add(40 * time.Second), base.Add(60 * time.Second)},
	} {
		if got := c.end(base, x.lastKill, x.lastAcknowledged); !got.Equal(x.want) {
			t.Errorf("killed at %v, acknowledged at %v: the end is at %v, not %v", x.lastKill, x.lastAcknowledged, got, x.want)
		}
	}
}

func TestCallbacks_DirectoryThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := clitest.Run(t, "callbacks", "--dir", filepath.Join(file, "dir"))
	if code != cli.ExitFailed || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, file) {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

func TestCallbacks_NoServerToStart(t *testing.T) {
	t.Setenv("REDIS_SERVER", "no-such-redis-server")
	_, stderr, code := clitest.Run(t, "callbacks", "--redis", "start")
	if code != cli.ExitFailed || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "there is no no-such-redis-server to start") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// A worker that does not come to work is not waited for when the program is interrupted:
// here, its server takes connections and says nothing.
func TestStartWorker_Interrupted(t *testing.T) {
	t.Setenv(clitest.AsProgram, "1")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil { // it is scheduling
			defer c.Close()
			cancel()
			<-t.Context().Done()
		}
	}()
	o := order{Place: stores.Place{URL: "redis://" + l.Addr().String(), Name: "queue"}, Secret: make([]byte, 32), Concurrency: 1,
		Lease: time.Second, Tasks: 1, Chunks: []int{0}, URL: "http://127.0.0.1:1/", Base: time.Now(), Duration: time.Second}
	if w, err := startWorker(ctx, o, newLedger(1)); w != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", w, err)
	}
}

func TestCallbacks_InterruptPrintsWhatWasDone(t *testing.T) {
	stdout := clitest.InterruptProgram(t, "callbacks: 1,000 tasks", "callbacks", "--json", "--tasks", "1k", "--duration", "10m")
	var r parsedReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	x := r.Result
	if !x.Interrupted || x.Lost != nil || x.Pending == nil || *x.Pending < x.Scheduled-x.Delivered || x.Delivered == 1000 {
		t.Errorf("%+v", x)
	}
}

// startRealRedis starts a redis-server, which may be one of a cluster, or skips the test.
func startRealRedis(t *testing.T, cluster bool) string {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server"))
	if err != nil {
		t.Skip("there is no redis-server: see scripts/need-redis")
	}
	for range 3 {
		port := freePort(t)
		args := []string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", ""}
		if cluster {
			// Its bus is on another port, which the system chooses no better.
			args = append(args, "--cluster-enabled", "yes", "--cluster-port", freePort(t))
		}
		cmd := exec.Command(path, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-ended
		})
		// It ends if somebody else has got a port meanwhile.
		c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
		defer c.Close()
		awaitTrue(t, func() bool {
			select {
			case <-ended:
				return true
			default:
				err := c.Ping(t.Context()).Err()
				return err == nil || strings.HasPrefix(err.Error(), "NOAUTH ")
			}
		})
		select {
		case <-ended:
		default:
			return "127.0.0.1:" + port
		}
	}
	t.Fatal("redis-server ends as soon as it is started")
	return ""
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

func TestCallbacks_RealServer(t *testing.T) {
	t.Parallel()
	addr := startRealRedis(t, false)
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	ctx := context.Background()
	awaitTrue(t, func() bool { return c.Set(ctx, "mine", 1, 0).Err() == nil })
	check(t, runProgram(t, "--redis", addr, "--tasks", "2k", "--duration", "1s", "--kills", "1", "--lease", lease), 2000, 1)
	if keys := c.Keys(ctx, "*").Val(); len(keys) != 1 || keys[0] != "mine" {
		t.Errorf("left behind: %q", keys)
	}
	_, stderr, code := clitest.Run(t, "callbacks", "--redis", addr, "--cluster")
	if code != cli.ExitFailed || !strings.Contains(stderr, "without --cluster") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestCallbacks_RealCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector: make test runs it")
	}
	t.Parallel()
	addr := startRealRedis(t, true)
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	ctx := context.Background()
	awaitTrue(t, func() bool { return c.Ping(ctx).Err() == nil })
	if err := c.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, func() bool { return strings.Contains(c.ClusterInfo(ctx).Val(), "cluster_state:ok") })
	_, stderr, code := clitest.Run(t, "callbacks", "--redis", addr)
	if code != cli.ExitFailed || !strings.Contains(stderr, "use --cluster") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	check(t, runProgram(t, "--redis", "redis://"+addr, "--cluster", "--tasks", "2k", "--duration", "1s", "--kills", "1", "--lease", lease), 2000, 1)
	if n := c.DBSize(ctx).Val(); n != 0 {
		t.Errorf("left behind: %d keys", n)
	}
}
