//go:build unix

package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/tickless/tickless/redistimer"
)

const childEnv = "TICKLESS_CHAOS_CHILD"

// quietRedis is the logger of go-redis here: a master that was killed is no news.
type quietRedis struct{}

func (quietRedis) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(quietRedis{})
	if o := os.Getenv(childEnv); o != "" {
		if err := child(o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv("TICKLESS_CHAOS") == "off" {
		fmt.Println("left out: TICKLESS_CHAOS=off")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// An order is what a worker process is told.
type order struct {
	Addrs       []string
	Cluster     bool
	Ledger      string
	Concurrency int
	Lease       time.Duration
	Timeout     time.Duration
}

// child is a worker process.
func child(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	var r redis.UniversalClient
	if o.Cluster {
		r = redis.NewClusterClient(redistimer.TuneCluster(&redis.ClusterOptions{Addrs: o.Addrs}))
	} else {
		r = redis.NewClient(&redis.Options{Addr: o.Addrs[0]})
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	w := redistimer.NewWorker(redistimer.New(r, redistimer.WithLogger(quietLog)), redistimer.WithConcurrency(o.Concurrency),
		redistimer.WithLease(o.Lease), redistimer.WithSafetyInterval(time.Second), redistimer.WithTimeout(o.Timeout),
		redistimer.WithBackoff(10*time.Millisecond, 200*time.Millisecond), redistimer.WithShutdownTimeout(2*time.Second))
	hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Concurrency}}
	w.Handle("h", func(_ context.Context, d redistimer.Delivery) error {
		q := url.Values{"key": {d.Key}, "due": {strconv.FormatInt(d.Due.UnixMicro(), 10)}, "pid": {strconv.Itoa(os.Getpid())}}
		resp, err := hc.Get(o.Ledger + "/?" + q.Encode())
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		switch strings.TrimPrefix(string(d.Body), mark) {
		case "panic":
			panic("poison")
		case "exit":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "hang":
			select {}
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println("works")
	return w.Run(ctx)
}

// A proc is a worker process, as a test has it.
type proc struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
	once  sync.Once
}

func (x *trial) start(o order) *proc {
	x.Helper()
	text, _ := json.Marshal(o)
	p := &proc{cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		x.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		x.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		x.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "works\n" {
		x.Fatalf("a worker process: %q, %v", line, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	x.procs = append(x.procs, p)
	return p
}

func (p *proc) pid() int { return p.cmd.Process.Pid }

// kill is kill -9. It may be called from anywhere, and reports whether it was the
// first.
func (p *proc) kill() (first bool) {
	p.once.Do(func() {
		first = true
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return first
}

func (p *proc) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *proc) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(15 * time.Second):
		p.kill()
	}
}

var rows struct {
	sync.Mutex
	m map[string]string
}

// report writes a row at once: a later case may end the program.
func report(name, row string) error {
	rows.Lock()
	defer rows.Unlock()
	if rows.m == nil {
		rows.m = make(map[string]string)
	}
	rows.m[name] = row
	return writeReport(os.Getenv("TICKLESS_FAULTS"))
}

const (
	tableBegin = "<!-- cases: begin (make chaos writes this) -->\n"
	tableEnd   = "<!-- cases: end -->"
)

// writeReport puts the rows into the table of a file, in place of those that it
// has of the same cases.
func writeReport(path string) error {
	if path == "" || len(rows.m) == 0 {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), tableBegin)
	old, tail, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the table", path)
	}
	name := func(row string) string { return strings.TrimSpace(strings.SplitN(row, "|", 3)[1]) }
	all := make(map[string]string)
	for row := range strings.Lines(old) {
		if strings.HasPrefix(row, "| ") && name(row) != "case" {
			all[name(row)] = strings.TrimSpace(row)
		}
	}
	for _, row := range rows.m {
		all[name(row)] = row
	}
	var list []string
	for _, row := range all {
		list = append(list, row)
	}
	slices.Sort(list)
	var b strings.Builder
	fmt.Fprintf(&b, "\nLast written %s; %s %s/%s, %d procs.\n\n", time.Now().UTC().Format(time.DateOnly), runtime.Version(),
		runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	b.WriteString("| case | what happened | acknowledged | lost | duplicates | early | leases that ran out | dead letters | repairs needed | late p50 / max | outcome |\n")
	b.WriteString("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n")
	for _, row := range list {
		b.WriteString(row + "\n")
	}
	b.WriteString("\n")
	return os.WriteFile(path, []byte(head+tableBegin+b.String()+tableEnd+tail), 0o644)
}
