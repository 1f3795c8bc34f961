//go:build unix

package deploy

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/clitest"
	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/pgstore"
	"github.com/tickless/tickless/durable/pgstore/pgtest"
)

func TestMain(m *testing.M) {
	if version := os.Getenv("DEPLOY_VERSION"); version != "" {
		go func() { // a program ends with the test that has started it
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
		run := func() error { return runProgram(version) }
		switch {
		case os.Getenv("DEPLOY_NIGHT") != "":
			run = runNightWorker
		case os.Getenv("DEPLOY_DAY") != "":
			run = runDayWorker
		}
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "3") // the three stores: the tests mostly wait
	os.Exit(m.Run())
}

const lease = 2 * time.Second

// A version of the program has these repeating tasks. The period of "steady" is the same in
// all of them, and so are its runs.
func tasksOf(version int64) (items []durable.Item) {
	add := func(key string, every time.Duration, body string) {
		items = append(items, durable.Item{When: durable.Next(), Task: durable.Task{
			Key: key, Handler: "h", Every: every, Body: []byte(body), Missed: durable.FireMissed, MaxAttempts: 20}})
	}
	v := fmt.Sprint(version)
	add("steady", 250*time.Millisecond, "")
	add("other body", 300*time.Millisecond, v)
	add("other period", time.Duration(200+100*version)*time.Millisecond, v)
	if version%2 == 0 {
		add("even", 300*time.Millisecond, v)
	} else {
		add("odd", 300*time.Millisecond, v)
	}
	return items
}

// runProgram is the program that is deployed. It writes a line for each run that begins, and
// one for each that ends.
func runProgram(text string) error {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	ledger, err := os.OpenFile(os.Getenv("DEPLOY_LEDGER"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	st, closeStore, err := locationFromEnv().Open(io.Discard)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client := durable.New(st, durable.WithLogger(slog.New(slog.DiscardHandler)))
	if _, err := client.Sync(ctx, "program", version, tasksOf(version)); err != nil {
		if ctx.Err() != nil { // it was ended before it had begun
			return closeStore()
		}
		return err
	}
	w := durable.NewWorker(client, durable.WithLease(lease), durable.WithBackoff(0, 50*time.Millisecond))
	w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
		line := func(what string) {
			fmt.Fprintf(ledger, "%s\t%d\t%s\t%s\t%d\n", what, os.Getpid(), d.Key, d.Body, d.Due.UnixMicro())
		}
		line("begin")
		if err := ctx.Err(); err != nil {
			return err
		}
		if rand.IntN(20) == 0 {
			line("failed")
			return fmt.Errorf("once in a while")
		}
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		line("end")
		return nil
	})
	if err := w.Run(ctx); err != nil {
		return err
	}
	return closeStore()
}

func locationFromEnv() stores.Location {
	return stores.Location{File: os.Getenv("DEPLOY_FILE"), URL: os.Getenv("DEPLOY_REDIS"), Postgres: os.Getenv("DEPLOY_POSTGRES")}
}

// A process is a running program.
type process struct {
	*exec.Cmd
	version int64
	exited  chan error
	killed  bool
}

// start starts a program, whose output goes to stdout.
func start(t *testing.T, version int64, env []string, stdout io.Writer) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(exe), version: version, exited: make(chan error, 1)}
	p.Env = append(append(os.Environ(), env...), fmt.Sprint("DEPLOY_VERSION=", version))
	p.Stdout, p.Stderr = stdout, os.Stderr
	if _, err := p.StdinPipe(); err != nil { // stays open until the program has ended
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- p.Wait() }()
	return p
}

func (p *process) end(t *testing.T, kill bool) {
	t.Helper()
	if p.killed = kill; kill {
		_ = p.Process.Kill()
		<-p.exited
		return
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	err := <-p.exited
	if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		p.killed = true // it had not come so far as to listen for signals
	} else if err != nil {
		t.Errorf("version %d: %v", p.version, err)
	}
}

// TestDeploy deploys version after version for some seconds, or for minutes in make chaos.
// Each deploy starts a new version and ends an old one, by a signal or by force. Now and then
// an old version starts again: its Sync changes nothing.
func TestDeploy(t *testing.T) {
	duration := 6 * time.Second
	switch {
	case os.Getenv("TICKLESS_CHAOS") == "long":
		duration = 3 * time.Minute
	case testing.Short():
		t.Skip("it takes some seconds")
	}
	onEachStore(t, func(t *testing.T, l stores.Location) { deploy(t, duration, l) })
}

// onEachStore runs a test with a store in a file, on Redis and in PostgreSQL.
func onEachStore(t *testing.T, f func(t *testing.T, l stores.Location)) {
	on := func(name string, location func(t *testing.T) stores.Location) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			f(t, location(t))
		})
	}
	on("file", func(t *testing.T) stores.Location {
		return stores.Location{File: filepath.Join(t.TempDir(), "tasks.db")}
	})
	on("redis", func(t *testing.T) stores.Location { return stores.Location{URL: clitest.StartRedis(t)} })
	on("postgres", func(t *testing.T) stores.Location {
		url := pgtest.Start(t, "fsync=off").URL("postgres")
		l := stores.Location{Postgres: url}
		pool, err := l.Pool()
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if _, err := pgstore.Migrate(context.Background(), pool); err != nil {
			t.Fatal(err)
		}
		return l
	})
}

func deploy(t *testing.T, duration time.Duration, l stores.Location) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(ledger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"DEPLOY_LEDGER=" + ledger, "DEPLOY_FILE=" + l.File, "DEPLOY_REDIS=" + l.URL, "DEPLOY_POSTGRES=" + l.Postgres}
	var running, all []*process
	run := func(version int64) {
		p := start(t, version, env, nil)
		running, all = append(running, p), append(all, p)
	}
	version := int64(1)
	run(version)
	for end := time.Now().Add(duration); time.Now().Before(end); {
		time.Sleep(2 * time.Second)
		if rand.IntN(4) == 0 && version > 1 {
			run(version - 1) // an old one comes back
		} else {
			version++
			run(version)
		}
		for len(running) > 2 {
			running[0].end(t, rand.IntN(2) == 0)
			running = running[1:]
		}
	}
	version++
	run(version) // the last version alone finishes what is due
	for _, p := range running[:len(running)-1] {
		p.end(t, rand.IntN(2) == 0)
	}
	time.Sleep(2*lease + 2*time.Second)
	running[len(running)-1].end(t, false)
	judge(t, ledger, all, version)
}

// A run is what the ledger has of a run.
type run struct{ begins, failed, ends, lost int }

// judge checks the ledger: no run of a task is missing, and none ended twice, unless a
// process that ran it was killed.
func judge(t *testing.T, ledger string, all []*process, lastVersion int64) {
	killed := map[string]bool{}
	for _, p := range all {
		killed[strconv.Itoa(p.Process.Pid)] = p.killed
	}
	f, err := os.Open(ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs := map[string]map[int64]*run{}
	lastBody := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		x := strings.Split(lines.Text(), "\t")
		if len(x) != 5 {
			continue // a process was killed while it wrote
		}
		due, err := strconv.ParseInt(x[4], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if runs[x[2]] == nil {
			runs[x[2]] = map[int64]*run{}
		}
		r := runs[x[2]][due]
		if r == nil {
			r = new(run)
			runs[x[2]][due] = r
		}
		switch x[0] {
		case "begin":
			r.begins++
			if killed[x[1]] {
				r.lost++ // the process may have been killed after the end, before the store knew
			}
		case "failed":
			r.failed++
		case "end":
			r.ends++
			if x[2] == "other body" {
				lastBody = x[3]
			}
		}
	}
	for key, byDue := range runs {
		for due, r := range byDue {
			if r.ends > 1+r.lost {
				t.Errorf("%s: the run of %d ended %d times, and %d of its attempts were killed", key, due, r.ends, r.lost)
			}
		}
	}
	const period = int64(250 * time.Millisecond / time.Microsecond)
	var first, last int64
	for due := range runs["steady"] {
		if first == 0 || due < first {
			first = due
		}
		last = max(last, due)
	}
	missing := 0
	for due := first; due < last; due += period { // the last one may be running still
		if r := runs["steady"][due]; r == nil || r.ends == 0 {
			missing++
		}
	}
	if missing > 0 || first == last {
		t.Errorf("%d of %d runs of the steady task are missing", missing, (last-first)/period)
	}
	if n := int64(len(runs["steady"])); n != (last-first)/period+1 {
		t.Errorf("the steady task has %d runs, want %d", n, (last-first)/period+1)
	}
	if want := fmt.Sprint(lastVersion); lastBody != want {
		t.Errorf("the last run has the body of version %s, want %s", lastBody, want)
	}
	t.Logf("%d processes, %d versions, %d runs of the steady task", len(all), lastVersion, len(runs["steady"]))
}
