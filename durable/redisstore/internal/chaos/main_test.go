//go:build unix

package chaos

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
)

const childEnv = "TICKLESS_CHAOS_CHILD"

// quietRedis is a logger for go-redis that discards everything, because these tests
// expect errors.
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
	flag.Parse()
	os.Exit(m.Run())
}

// An order tells a worker process how to run.
type order struct {
	Addrs       []string
	Cluster     bool
	Sentinel    bool // the addresses are those of Sentinels
	Ledger      string
	Concurrency int
	Lease       time.Duration
	Timeout     time.Duration
	Recheck     time.Duration
}

// child is the main function of a worker process. text is its order.
func child(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	var r redis.UniversalClient
	switch {
	case o.Cluster:
		r = redis.NewClusterClient(redisstore.TuneCluster(&redis.ClusterOptions{Addrs: o.Addrs}))
	case o.Sentinel:
		r = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "it", SentinelAddrs: o.Addrs})
	default:
		r = redis.NewClient(&redis.Options{Addr: o.Addrs[0]})
	}
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.Recheck = cmp.Or(o.Recheck, time.Second)
	w := durable.NewWorker(newClient(r, redisstore.WithRecheck(o.Recheck)), durable.WithConcurrency(o.Concurrency),
		durable.WithLease(o.Lease), durable.WithTimeout(o.Timeout),
		durable.WithBackoff(10*time.Millisecond, 200*time.Millisecond), durable.WithShutdownTimeout(2*time.Second))
	hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Concurrency}}
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		q := url.Values{"key": {d.Key}, "due": {strconv.FormatInt(d.Due.UnixMicro(), 10)}, "pid": {strconv.Itoa(os.Getpid())}}
		resp, err := hc.Get(o.Ledger + "/?" + q.Encode())
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		switch strings.TrimPrefix(string(d.Body), bodyMark) {
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

// A proc is a worker process of a trial.
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

// kill kills the process with kill -9. It returns true for the first call. Any goroutine
// may call it.
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
