package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
	"github.com/tickless/tickless/durable/pgstore"
	"github.com/tickless/tickless/durable/pgstore/pgtest"
)

// These tests know the service's API alone. They run against processes of the program.

func TestMain(m *testing.M) {
	if d, err := time.ParseDuration(os.Getenv(leaseEnv)); err == nil {
		lease = d
	}
	clitest.Main(m, clitest.UnderRoot(NewCommand))
}

// leaseEnv is the environment variable with the lease of the nodes that tests start.
const leaseEnv = "TICKLESS_TEST_LEASE"

// A node is a running process of the service.
type node struct {
	testing.TB
	cmd    *exec.Cmd
	url    string
	token  string
	stderr *bytes.Buffer
}

// startNode starts the service and waits for its first line.
func startNode(t testing.TB, args ...string) *node {
	t.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8"}, args...)
	n := &node{TB: t, cmd: clitest.ProgramCmd(args...), stderr: new(bytes.Buffer)}
	n.cmd.Stderr = n.stderr
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(line, "listening on ")
	if err != nil || !ok {
		n.kill()
		t.Fatalf("the service printed %q, %v: %s", line, err, n.stderr)
	}
	n.url = strings.TrimSpace(url)
	return n
}

// kill ends the process at once.
func (n *node) kill() {
	if n.cmd.ProcessState == nil {
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
	}
}

// stop asks the process to end, and returns its exit code.
func (n *node) stop() int {
	n.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.Fatal(err)
	}
	_ = n.cmd.Wait()
	return n.cmd.ProcessState.ExitCode()
}

type object = map[string]any

// call sends a request and returns the status, the answer's headers and its JSON.
func (n *node) call(method, path string, body any, headers ...string) (int, http.Header, object) {
	n.Helper()
	status, header, answer, err := n.try(method, path, body, headers...)
	if err != nil {
		n.Fatalf("%s %s: %v\n%s", method, path, err, n.stderr)
	}
	return status, header, answer
}

func (n *node) try(method, path string, body any, headers ...string) (int, http.Header, object, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil, nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, n.url+path, r)
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if n.token != "" {
		req.Header.Set("Authorization", "Bearer "+n.token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	var answer object
	if len(b) > 0 && strings.Contains(resp.Header.Get("Content-Type"), "json") {
		err = json.Unmarshal(b, &answer)
	}
	return resp.StatusCode, resp.Header, answer, err
}

// want sends a request and checks the status.
func (n *node) want(status int, method, path string, body any, headers ...string) object {
	n.Helper()
	got, _, answer := n.call(method, path, body, headers...)
	if got != status {
		n.Fatalf("%s %s answered %d, want %d: %v", method, path, got, status, answer)
	}
	return answer
}

// A receiver counts the calls of each task.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	calls map[string][]time.Time
	early []string
	serve http.HandlerFunc // answers, after the call is counted; nil: 200
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{calls: map[string][]time.Time{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		now := time.Now()
		key := req.Header.Get("Tickless-Key")
		due, err := time.Parse(time.RFC3339Nano, req.Header.Get("Tickless-Due"))
		r.mu.Lock()
		r.calls[key] = append(r.calls[key], now)
		if err != nil || due.After(now) {
			r.early = append(r.early, fmt.Sprint(key, " ", due, " ", err))
		}
		serve := r.serve
		r.mu.Unlock()
		if serve != nil {
			serve(w, req)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) count(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls[key])
}

// total returns how many tasks were called.
func (r *receiver) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

func (r *receiver) answerWith(f http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serve = f
}

// eventually waits until ok returns true. The test's own timeout bounds it.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for !ok() {
		time.Sleep(5 * time.Millisecond)
	}
}

// Each of these tests runs against a service on each kind of store. They share the servers, where
// each has a store of its own. flags start another node on the same store.
var onEachStore = []struct {
	name string
	test func(t *testing.T, flags []string)
}{{"Story", story}, {"Answers", answers}, {"PatchesAtOnce", patchesAtOnce}, {"Killed", killed}}

func TestServe_OnEachStore(t *testing.T) {
	t.Setenv(leaseEnv, "5s")
	on := func(kind string, start func(t *testing.T) (flags func(t *testing.T, name string) []string)) {
		t.Run(kind, func(t *testing.T) {
			flags := start(t)
			for _, x := range onEachStore {
				t.Run(x.name, func(t *testing.T) { x.test(t, flags(t, strings.ToLower(x.name))) })
			}
		})
	}
	on("sqlite", func(*testing.T) func(*testing.T, string) []string {
		return func(t *testing.T, _ string) []string { return []string{"--data", t.TempDir()} }
	})
	on("redis", func(t *testing.T) func(*testing.T, string) []string {
		url := clitest.StartRedis(t)
		return func(_ *testing.T, name string) []string {
			return []string{"--redis", url, "--name", name, "--unsigned"}
		}
	})
	on("postgres", func(t *testing.T) func(*testing.T, string) []string {
		url := pgtest.Start(t, "fsync=off").URL("postgres")
		return func(t *testing.T, name string) []string {
			createTables(t, url, name)
			return []string{"--postgres", url, "--name", name, "--unsigned"}
		}
	})
}

// createTables makes a store in a schema of a Postgres server.
func createTables(t *testing.T, url, schema string) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err == nil {
		_, err = pgstore.Migrate(t.Context(), pool, pgstore.WithSchema(schema))
		pool.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The life of tasks, from the API alone.
func story(t *testing.T, flags []string) {
	r := newReceiver(t)
	n := startNode(t, flags...)

	// By a key of one's own.
	task := object{"url": r.URL, "body": "17", "delay": "1h"}
	created := n.want(201, "PUT", "/v1/tasks/order-17", task)
	if created["state"] != "pending" || created["outcome"] != "created" || created["body"] != "17" {
		t.Fatalf("created %v", created)
	}
	n.want(412, "PUT", "/v1/tasks/order-17", task, "If-None-Match", "*")
	n.want(200, "PUT", "/v1/tasks/order-17", task)
	_, h, got := n.call("GET", "/v1/tasks/order-17", nil)
	due := got["due"]
	if h.Get("ETag") == "" || got["url"] != r.URL {
		t.Fatalf("got %v, ETag %q", got, h.Get("ETag"))
	}
	n.want(412, "PATCH", "/v1/tasks/order-17", object{"body": "18"}, "If-Match", `"1"`)
	n.want(200, "PATCH", "/v1/tasks/order-17", object{"body": "18"}, "If-Match", h.Get("ETag"))
	if got := n.want(200, "GET", "/v1/tasks/order-17", nil); got["body"] != "18" || got["due"] != due {
		t.Fatalf("after a patch %v", got)
	}
	n.want(200, "PATCH", "/v1/tasks/order-17", object{"delay": "0s"})
	eventually(t, func() bool { return n.want(200, "GET", "/v1/tasks/order-17", nil)["state"] == "done" })
	if r.count("order-17") != 1 {
		t.Fatalf("called %d times", r.count("order-17"))
	}
	runs := n.want(200, "GET", "/v1/tasks/order-17/runs", nil)["runs"].([]any)
	if len(runs) != 1 || runs[0].(object)["state"] != "done" {
		t.Fatalf("runs %v", runs)
	}

	// By a key of the server.
	first := n.want(201, "POST", "/v1/tasks", object{"url": r.URL}, "Idempotency-Key", "a")
	again := n.want(200, "POST", "/v1/tasks", object{"url": r.URL}, "Idempotency-Key", "a")
	if first["key"] != again["key"] {
		t.Fatalf("the keys are %v and %v", first["key"], again["key"])
	}
	eventually(t, func() bool { return r.count(first["key"].(string)) == 1 })
	n.want(200, "POST", "/v1/tasks", object{"url": r.URL}, "Idempotency-Key", "a")

	// A batch has a result for each, in order.
	batch := n.want(200, "POST", "/v1/tasks", object{"tasks": []object{{"key": "b1", "url": r.URL, "delay": "1h"}, {"key": "b2", "url": "ftp://x"}, {"key": "b3", "url": r.URL, "delay": "1h"}}})
	results := batch["tasks"].([]any)
	if len(results) != 3 || results[0].(object)["outcome"] != "created" || results[1].(object)["error"] == nil || results[2].(object)["outcome"] != "created" {
		t.Fatalf("results %v", results)
	}
	if n.want(200, "POST", "/v1/tasks/cancel", object{"prefix": "b", "limit": 10})["count"] != 2.0 {
		t.Fatal("not both were cancelled")
	}
	n.want(422, "POST", "/v1/tasks/cancel", object{"limit": 10})

	// A dead letter, and back.
	r.answerWith(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone fishing", http.StatusTeapot) })
	n.want(201, "PUT", "/v1/tasks/dead", object{"url": r.URL})
	eventually(t, func() bool { return n.want(200, "GET", "/v1/tasks/dead", nil)["state"] == "dead" })
	if got := n.want(200, "GET", "/v1/tasks?state=dead&error=fishing", nil)["tasks"].([]any); len(got) != 1 {
		t.Fatalf("the dead are %v", got)
	}
	n.want(409, "POST", "/v1/tasks/dead/run", nil)
	r.answerWith(nil)
	n.want(200, "POST", "/v1/tasks/dead/requeue", nil)
	eventually(t, func() bool { return n.want(200, "GET", "/v1/tasks/dead", nil)["state"] == "done" })

	// A repeating task, its next run moved, and paused.
	n.want(201, "PUT", "/v1/tasks/daily", object{"url": r.URL, "cron": "0 9 * * *", "zone": "Europe/Berlin"})
	n.want(200, "PATCH", "/v1/tasks/daily", object{"delay": "0s"})
	eventually(t, func() bool { return r.count("daily") == 1 })
	eventually(t, func() bool { return n.want(200, "GET", "/v1/tasks/daily", nil)["state"] == "pending" })
	n.want(200, "PATCH", "/v1/tasks/daily", object{"paused": true})
	if got := n.want(200, "GET", "/v1/tasks/daily", nil); got["state"] != "paused" || got["due"] != nil || got["cron"] != "0 9 * * *" {
		t.Fatalf("paused %v", got)
	}
	if got := n.want(200, "POST", "/v1/tasks/daily/run", nil); got["outcome"] != "once" {
		t.Fatalf("a paused task, run once: %v", got)
	}
	eventually(t, func() bool {
		return r.count("daily") == 2 && n.want(200, "GET", "/v1/tasks/daily", nil)["state"] == "paused"
	})
	n.want(200, "PATCH", "/v1/tasks/daily", object{"paused": false, "zone": "America/New_York"})
	if got := n.want(200, "GET", "/v1/tasks/daily", nil); got["state"] != "pending" || got["zone"] != "America/New_York" {
		t.Fatalf("resumed %v", got)
	}
	if list := n.want(200, "GET", "/v1/upcoming?for=49h", nil)["upcoming"].([]any); len(list) < 2 {
		t.Fatalf("upcoming %v", list)
	}
	n.want(204, "DELETE", "/v1/tasks/daily", nil)
	n.want(404, "DELETE", "/v1/tasks/none", nil)

	// A task that is created paused waits, and runs when it is resumed.
	if got := n.want(201, "PUT", "/v1/tasks/held", object{"url": r.URL, "paused": true}); got["state"] != "paused" {
		t.Fatalf("created paused %v", got)
	}
	n.want(200, "POST", "/v1/tasks", object{"tasks": []object{{"key": "held-too", "url": r.URL, "paused": true}, {"key": "not-held", "url": r.URL}}})
	eventually(t, func() bool { return r.count("not-held") == 1 })
	if r.count("held")+r.count("held-too") != 0 {
		t.Fatal("a paused task was called")
	}
	n.want(200, "PATCH", "/v1/tasks/held", object{"paused": false})
	eventually(t, func() bool { return r.count("held") == 1 })

	// 410 ends a repeating task.
	r.answerWith(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "moved away", http.StatusGone) })
	n.want(201, "PUT", "/v1/tasks/hourly", object{"url": r.URL, "every": "1h"})
	n.want(200, "PATCH", "/v1/tasks/hourly", object{"delay": "0s"})
	eventually(t, func() bool {
		got := n.want(200, "GET", "/v1/tasks/hourly", nil)
		return got["state"] == "failed" && strings.Contains(fmt.Sprint(got["last_error"]), "moved away")
	})
	if list := n.want(200, "GET", "/v1/upcoming?for=2h", nil)["upcoming"].([]any); len(list) != 0 {
		t.Fatalf("upcoming after 410: %v", list)
	}
	r.answerWith(nil)

	// A paused queue waits, on all nodes.
	n.want(200, "PUT", "/v1/queues/http", object{"paused": true, "note": "too much"})
	if q := n.want(200, "GET", "/v1/queues/http", nil); q["paused"] != true || q["note"] != "too much" {
		t.Fatalf("the queue is %v", q)
	}
	n.want(201, "PUT", "/v1/tasks/waits", object{"url": r.URL})
	time.Sleep(50 * time.Millisecond)
	if got := n.want(200, "GET", "/v1/tasks/waits", nil); got["state"] != "pending" || r.count("waits") != 0 {
		t.Fatalf("in a paused queue %v", got)
	}
	n.want(200, "PUT", "/v1/queues/http", object{})
	eventually(t, func() bool { return r.count("waits") == 1 })

	// A queue's limit holds over all nodes.
	n.want(200, "PUT", "/v1/queues/http", object{"concurrency": 7, "rate": 2000})
	if q := n.want(200, "GET", "/v1/queues/http", nil); q["concurrency"] != 7.0 || q["rate"] != 2000.0 {
		t.Fatalf("the queue is %v", q)
	}
	n.want(200, "DELETE", "/v1/queues/http", nil)

	// What is wrong is said.
	for path, body := range map[string]object{
		"/url":   {},
		"/cron":  {"url": r.URL, "cron": "61 * * * *"},
		"/zone":  {"url": r.URL, "cron": "0 9 * * *", "zone": "Europe/Nowhere"},
		"/queue": {"url": r.URL, "queue": "none"},
		"/what":  {"url": r.URL, "what": 1},
		"/delay": {"url": r.URL, "delay": 5},
	} {
		p := n.want(422, "PUT", "/v1/tasks/wrong", body)
		if !strings.Contains(fmt.Sprint(p["errors"]), "pointer:"+path) {
			t.Errorf("%v: %v", body, p)
		}
	}
	if code := n.stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, n.stderr)
	}
	if len(r.early) > 0 {
		t.Errorf("early: %v", r.early)
	}
}

// The phases in which killed kills the process: while clients put tasks, post batches
// and move tasks, each beside calls. A phase schedules tasks and returns the keys for which a
// call was acknowledged.
var phases = []func(n *node, url, key, delay string) (keys []string, err error){
	func(n *node, url, key, delay string) (keys []string, err error) {
		status, _, _, err := n.try("PUT", "/v1/tasks/"+key, object{"url": url, "delay": delay})
		if status == 201 {
			keys = []string{key}
		}
		return keys, err
	},
	func(n *node, url, key, delay string) (keys []string, err error) {
		var tasks []object
		for i := range 5 {
			tasks = append(tasks, object{"key": fmt.Sprint(key, "-", i), "url": url, "delay": delay})
		}
		_, _, answer, err := n.try("POST", "/v1/tasks", object{"tasks": tasks})
		results, _ := answer["tasks"].([]any)
		for _, x := range results {
			if x.(object)["outcome"] == "created" {
				keys = append(keys, x.(object)["key"].(string))
			}
		}
		return keys, err
	},
	func(n *node, url, key, delay string) (keys []string, err error) {
		if _, _, _, err := n.try("PUT", "/v1/tasks/"+key, object{"url": url, "delay": "24h"}); err != nil {
			return nil, err
		}
		status, _, _, err := n.try("PATCH", "/v1/tasks/"+key, object{"delay": delay})
		if status == 200 {
			keys = []string{key}
		}
		return keys, err
	},
}

// No task that was acknowledged is lost, and none is called early, although the process is
// killed again and again.
func killed(t *testing.T, flags []string) {
	r := newReceiver(t)
	acknowledged := map[string]bool{}
	var mu sync.Mutex
	const clients = 8
	for round := range phases {
		n := startNode(t, flags...)
		var sending sync.WaitGroup
		for c := range clients {
			sending.Go(func() {
				for i := 0; ; i++ {
					keys, err := phases[round](n, r.URL, fmt.Sprintf("%d-%d-%d", round, c, i), fmt.Sprint(i%50, "ms"))
					if err != nil {
						return
					}
					mu.Lock()
					for _, key := range keys {
						acknowledged[key] = true
					}
					mu.Unlock()
				}
			})
		}
		eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(acknowledged) > (round+1)*200 })
		n.kill()
		sending.Wait()
	}
	startNode(t, flags...)
	missing := func() (n int) {
		for key := range acknowledged {
			if r.count(key) == 0 {
				n++
			}
		}
		return n
	}
	eventually(t, func() bool { return missing() == 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	doubled := 0
	for _, calls := range r.calls {
		doubled += len(calls) - 1
	}
	if doubled > len(phases)*256 || len(r.early) > 0 {
		t.Errorf("%d calls too many, early %v", doubled, r.early)
	}
}

// Ten clients that patch one task at once lose no change.
func patchesAtOnce(t *testing.T, flags []string) {
	n := startNode(t, flags...)
	n.want(201, "PUT", "/v1/tasks/k", object{"url": "http://127.0.0.1:9", "delay": "1h", "headers": object{}})
	var clients sync.WaitGroup
	for c := range 10 {
		clients.Go(func() {
			for {
				status, _, answer, err := n.try("PATCH", "/v1/tasks/k", object{"headers": object{fmt.Sprint("X-", c): "1"}})
				if err == nil && status == 200 {
					return
				}
				if err != nil || status != 409 && status != 503 {
					t.Errorf("%d, %v, %v", status, answer, err)
					return
				}
			}
		})
	}
	clients.Wait()
	if got := n.want(200, "GET", "/v1/tasks/k", nil)["headers"].(object); len(got) != 10 {
		t.Errorf("the headers are %v", got)
	}
}

// Without tokens, the service listens only on loopback addresses.
func TestServe_CalledWrongly(t *testing.T) {
	clitest.CheckWrongCalls(t, "serve", []clitest.WrongCall{
		{Args: []string{"--data", t.TempDir(), "--listen", "0.0.0.0:0"}, WantError: "--token-file"},
		{Args: []string{"--listen", "127.0.0.1:0"}, WantError: "--data"},
		{Args: []string{"--data", "x", "--redis", "redis://h"}, WantError: "one of"},
		{Args: []string{"--redis", "redis://h"}, WantError: "--secret-file"},
		{Args: []string{"--redis", "redis://h", "--postgres", "postgres://h/d", "--unsigned"}, WantError: "one of --data, --redis and --postgres"},
		{Args: []string{"--redis", "http://h", "--unsigned"}, WantError: "--redis: "},
		{Args: []string{"--data", "x", "--listen", "127.0.0.1:99999"}, WantError: "--listen"},
		{Args: []string{"--data", "x", "--per-host", "20000"}, WantError: "--per-host"},
		{Args: []string{"--data", "x", "--queues", "a,,b"}, WantError: "--queues"},
		{Args: []string{"--data", "x", "--keep-for", "-1s"}, WantError: "--keep-for"},
		{Args: []string{"--data", "x", "--host", "https://tasks.example"}, WantError: "--host"},
		{Args: []string{"--data", "x", "--allow", "everything"}, WantError: "--allow"},
		{Args: []string{"--data", "x", "--keep-bytes", "-1"}, WantError: "--keep-bytes"},
		{Args: []string{"--data", "x", "--prefix", "tickless"}, WantError: "--prefix"},
		{Args: []string{"--data", "x", "--prefix", "/a/../b"}, WantError: "--prefix"},
	})
}

// A request with another host's name, or from another site, is refused.
func TestServe_OtherSites(t *testing.T) {
	n := startNode(t, "--data", t.TempDir())
	req, _ := http.NewRequest("GET", n.url+"/v1/stats", nil)
	req.Host = "rebound.example"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another host: %d", resp.StatusCode)
	}
	n.want(403, "POST", "/v1/tasks", object{"url": "http://127.0.0.1:9"}, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site")
	n.want(201, "POST", "/v1/tasks", object{"url": "http://127.0.0.1:9", "delay": "1h"})
	n.want(431, "GET", "/v1/stats", nil, "X-Large", strings.Repeat("x", 64<<10))
}

// The service does not call itself, and after SIGTERM a running call ends first.
func TestServe_StopsWhenCallsHaveEnded(t *testing.T) {
	r := newReceiver(t)
	n := startNode(t, "--data", t.TempDir())
	n.want(422, "PUT", "/v1/tasks/self", object{"url": n.url + "/v1/tasks/x", "method": "DELETE"})
	byName := strings.Replace(n.url, "127.0.0.1", "localhost", 1)
	n.want(201, "PUT", "/v1/tasks/self", object{"url": byName + "/v1/tasks/x", "method": "DELETE"})
	eventually(t, func() bool { return n.want(200, "GET", "/v1/tasks/self", nil)["state"] == "dead" })
	release := make(chan struct{})
	ended := make(chan struct{})
	r.answerWith(func(http.ResponseWriter, *http.Request) { <-release; close(ended) })
	n.want(201, "PUT", "/v1/tasks/slow", object{"url": r.URL})
	eventually(t, func() bool { return r.count("slow") == 1 })
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	close(release)
	_ = n.cmd.Wait()
	select {
	case <-ended:
	default:
		t.Error("the call was cut")
	}
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, n.stderr)
	}
}
