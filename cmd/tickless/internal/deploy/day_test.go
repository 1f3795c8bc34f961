//go:build unix

package deploy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/stores"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

// The tests of a day print how long something took, beside the time that it should take on
// an idle machine. They fail if tasks are lost or buried.

// runDayWorker is a worker that writes a line when an attempt begins, and one when it ends.
// DEPLOY_DAY has its places, and each of its handlers with a limit, 0 for none. A task's body
// is how long its handler takes. The body "die" kills the worker.
func runDayWorker() error {
	st, closeStore, err := locationFromEnv().Open(io.Discard)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config := strings.Fields(os.Getenv("DEPLOY_DAY"))
	places, err := strconv.Atoi(config[0])
	if err != nil {
		return err
	}
	w := durable.NewWorker(durable.New(st, durable.WithLogger(slog.New(slog.DiscardHandler))), durable.WithLease(lease),
		durable.WithConcurrency(places), durable.WithShutdownTimeout(0))
	handle := func(ctx context.Context, d durable.Delivery) error {
		line := func(what string) { fmt.Printf("%s\t%s\t%d\n", what, d.Key, time.Now().UnixMicro()) }
		line("begin")
		if string(d.Body) == "die" {
			time.Sleep(rand.N(time.Second))
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		takes, err := time.ParseDuration(string(d.Body))
		if err != nil {
			return durable.NoRetry(err)
		}
		select {
		case <-time.After(takes):
			line("end")
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, h := range config[1:] {
		name, text, _ := strings.Cut(h, ":")
		limit, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		var opts []durable.HandlerOption
		if limit > 0 {
			opts = append(opts, durable.WithHandlerConcurrency(limit))
		}
		w.Handle(name, handle, opts...)
	}
	if err := w.Run(ctx); err != nil {
		return err
	}
	return closeStore()
}

// A day has a store with workers, and what these have written.
type day struct {
	*testing.T
	env    []string
	store  store.Store
	client *durable.Client

	mu      sync.Mutex
	changed sync.Cond
	begun   map[string]time.Time // by key: when its first attempt began
	ended   map[string]time.Time
	begins  int // attempts that have begun
}

// onDay runs a test on each store, if `make day` asks for it.
func onDay(t *testing.T, f func(d *day)) {
	if os.Getenv("TICKLESS_CHAOS") != "long" {
		t.Skip("make day runs it: it takes minutes")
	}
	onEachStore(t, func(t *testing.T, l stores.Location) {
		st, closeStore, err := l.Open(io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = closeStore() })
		d := &day{T: t, store: st, client: durable.New(st), begun: map[string]time.Time{}, ended: map[string]time.Time{},
			env: []string{"DEPLOY_FILE=" + l.File, "DEPLOY_REDIS=" + l.URL, "DEPLOY_POSTGRES=" + l.Postgres}}
		d.changed.L = &d.mu
		f(d)
	})
}

// worker starts a worker that is killed when the test ends.
func (d *day) worker(config string) *process {
	p := start(d.T, 1, append(d.env, "DEPLOY_DAY="+config), &dayOutput{day: d})
	d.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// A dayOutput takes the output of a worker.
type dayOutput struct {
	*day
	rest []byte // a line that is not complete
}

func (o *dayOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.changed.Broadcast()
	o.rest = append(o.rest, b...)
	for {
		line, rest, ok := bytes.Cut(o.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		o.rest = rest
		x := strings.Split(string(line), "\t")
		at, err := strconv.ParseInt(x[2], 10, 64)
		if err != nil {
			return 0, err
		}
		times := o.ended
		if x[0] == "begin" {
			times = o.begun
			o.begins++
		}
		if times[x[1]].IsZero() {
			times[x[1]] = time.UnixMicro(at)
		}
	}
}

// await waits until ok, which it calls after each line of a worker, with the lock held.
func (d *day) await(ok func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !ok() {
		d.changed.Wait()
	}
}

// awaitBegins waits until n more attempts have begun than before.
func (d *day) awaitBegins(before, n int) { d.await(func() bool { return d.begins >= before+n }) }

// awaitEnds waits until all keys with a prefix of n tasks have ended. It returns when the last
// one ended.
func (d *day) awaitEnds(prefix string, n int) (last time.Time) {
	d.await(func() bool {
		found := 0
		for key, at := range d.ended {
			if strings.HasPrefix(key, prefix) {
				found++
				if at.After(last) {
					last = at
				}
			}
		}
		return found == n
	})
	return last
}

func (d *day) begunCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.begins
}

// schedule schedules n tasks that are due now, with the keys prefix0, prefix1 and so on.
func (d *day) schedule(prefix string, n int, handler, body string) {
	d.Helper()
	items := make([]durable.Item, n)
	for i := range items {
		items[i] = durable.Item{Task: durable.Task{Key: fmt.Sprint(prefix, i), Handler: handler, Body: []byte(body)}, When: durable.After(0)}
	}
	if _, err := d.client.ScheduleBatch(d.Context(), items); err != nil {
		d.Fatal(err)
	}
}

func (d *day) stats() durable.Stats {
	d.Helper()
	s, err := d.client.Stats(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	return s
}

// figure prints how long something took.
func (d *day) figure(what string, took, target time.Duration) {
	d.Logf("%s: %v (target %v)", what, took.Round(100*time.Microsecond), target)
}

// A worker with 100 tasks of 1 s is killed, and another takes its place.
func TestDay_Crash(t *testing.T) {
	onDay(t, func(d *day) {
		first := d.worker("100 h:0")
		d.schedule("k", 100, "h", "1s")
		d.awaitBegins(0, 100)
		first.end(d.T, true)
		killed := time.Now()
		d.worker("100 h:0")
		d.figure("100 interrupted tasks are done", d.awaitEnds("k", 100).Sub(killed), lease+3*time.Second)
		if s := d.stats(); s.Dead != 0 {
			d.Errorf("%d tasks are buried", s.Dead)
		}
	})
}

// Five workers with 256 tasks are killed, one after the other. Crashes make all tasks suspects.
func TestDay_FiveKills(t *testing.T) {
	onDay(t, func(d *day) {
		d.schedule("k", 256, "h", "10s")
		for range 5 {
			before := d.begunCount()
			p := d.worker("256 h:0")
			d.awaitBegins(before, 1)
			time.Sleep(time.Second)
			p.end(d.T, true)
		}
		killed := time.Now()
		d.worker("256 h:0")
		buried := false
		go func() { // a buried task never ends
			for ; d.Context().Err() == nil; time.Sleep(time.Second) {
				if s, err := d.client.Stats(d.Context()); err == nil && s.Dead > 0 {
					d.mu.Lock()
					buried = true
					d.mu.Unlock()
					d.changed.Broadcast()
					return
				}
			}
		}()
		d.await(func() bool { return buried || len(d.ended) == 256 })
		d.figure("256 tasks of 10 s are done after five kills", time.Since(killed), 3*time.Minute)
		if s := d.stats(); s.Dead != 0 {
			d.Errorf("%d tasks are buried", s.Dead)
		}
	})
}

// A task kills each worker that runs it. Harmless tasks that run beside it survive.
func TestDay_Poison(t *testing.T) {
	onDay(t, func(d *day) {
		d.schedule("poison", 1, "h", "die")
		d.schedule("k", 50, "h", "1s")
		began, killed := time.Now(), 0
		p := d.worker("64 h:0")
		for {
			select {
			case <-p.exited:
				killed++
				p = d.worker("64 h:0")
				continue
			case <-time.After(200 * time.Millisecond):
			}
			if s := d.stats(); s.Dead > 0 && s.Pending+s.Running == 0 {
				break
			}
		}
		d.mu.Lock()
		ended := len(d.ended)
		d.mu.Unlock()
		if s := d.stats(); s.Dead != 1 || ended != 50 {
			d.Errorf("%d tasks are buried, and %d of 50 harmless ones are done", s.Dead, ended)
		}
		d.Logf("50 harmless tasks of 1 s are done, and the poison is buried: %v, %d kills", time.Since(began).Round(time.Millisecond), killed)
	})
}

// Suspects wait for each other, and nothing else waits for them.
func TestDay_Suspects(t *testing.T) {
	onDay(t, func(d *day) {
		d.worker("100 h:0 fresh:0")
		number := 0
		oneByOne := func(n int) time.Duration {
			began := time.Now()
			for range n {
				number++
				key := fmt.Sprint("fresh", number)
				if _, err := d.client.Schedule(d.Context(), durable.Task{Key: key, Handler: "fresh", Body: []byte("0s")}, durable.After(0)); err != nil {
					d.Fatal(err)
				}
				d.await(func() bool { return !d.ended[key].IsZero() })
			}
			return time.Since(began)
		}
		oneByOne(100)
		without := oneByOne(300)
		d.importSuspects(5000)
		d.await(func() bool { return d.begins > 400 }) // one of them runs
		with := oneByOne(300)
		d.Logf("300 fresh tasks one by one: %v, and beside 5,000 suspects %v: %.2f times (target 1.2)",
			without.Round(time.Millisecond), with.Round(time.Millisecond), with.Seconds()/without.Seconds())
		if s := d.stats(); s.Pending != 4999 {
			d.Errorf("%d tasks are pending, want 4999 suspects", s.Pending)
		}
	})
}

// importSuspects adds due tasks that take an hour and have crashed three times.
func (d *day) importSuspects(n int) {
	d.Helper()
	now, err := d.store.Now(d.Context(), 0)
	if err != nil {
		d.Fatal(err)
	}
	var items []store.Item
	for i := range n {
		x := durable.Item{Task: durable.Task{Key: fmt.Sprint("suspect", i), Handler: "h", Body: []byte("1h")}, When: durable.After(0)}
		stored, err := x.Stored()
		if err != nil {
			d.Fatal(err)
		}
		e := &store.Entry{Task: stored.Task, State: store.Pending, At: now, Due: now, Attempts: 3, Crashes: 3, Suspect: true}
		items = append(items, store.Item{ID: e.ID, Entry: e})
	}
	number := int64(0)
	for batch := range slices.Chunk(items, store.MaxBatch) {
		number++
		if _, err := d.store.Change(d.Context(), 0, store.Stamp{Sender: "day", Number: number}, store.Command{Op: store.Import, Items: batch}); err != nil {
			d.Fatal(err)
		}
	}
}

// A fresh task begins at once if a worker has a place for it, beside others that have none.
func TestDay_WakeUps(t *testing.T) {
	onDay(t, func(d *day) {
		for _, x := range []struct {
			name, full string
			holds      int
			rest       []string
			pause      time.Duration
			target     time.Duration
		}{
			{"beside four full workers", "2 %s:0", 8, []string{"2 %s:0"}, 50 * time.Millisecond, 50 * time.Millisecond},
			{"beside three whose one handler is full", "8 %s:1 %[1]s-other:0", 3, []string{"8 %s:0"}, 50 * time.Millisecond, 50 * time.Millisecond},
			{"in steady load, two idle of four", "4 %s:0", 8, []string{"4 %s:0", "4 %s:0"}, 10 * time.Millisecond, 100 * time.Millisecond},
		} {
			h := strings.ReplaceAll(x.name, " ", "-")
			perWorker, _ := strconv.Atoi(x.full[:1])
			if strings.Contains(x.full, ":1") {
				perWorker = 1
			}
			var all []*process
			for i := range x.holds / perWorker { // one after the other, so that each is full
				all = append(all, d.worker(fmt.Sprintf(x.full, h)))
				before := d.begunCount()
				d.schedule(fmt.Sprint("hold ", x.name, i, " "), perWorker, h, "1h")
				d.awaitBegins(before, perWorker)
			}
			for _, config := range x.rest {
				all = append(all, d.worker(fmt.Sprintf(config, h)))
			}
			for running := 0; running < len(all); time.Sleep(20 * time.Millisecond) {
				workers, err := d.client.Workers(d.Context())
				if err != nil {
					d.Fatal(err)
				}
				running = 0
				for _, w := range workers {
					if slices.ContainsFunc(w.Handlers, func(x durable.WorkerHandler) bool { return x.Handler == h }) {
						running++
					}
				}
			}
			const n = 200
			scheduled := map[string]time.Time{}
			for i := range n {
				key := fmt.Sprint("fresh ", x.name, i, " ")
				scheduled[key+"0"] = time.Now()
				d.schedule(key, 1, h, "5ms")
				time.Sleep(rand.N(2 * x.pause))
			}
			d.awaitEnds("fresh "+x.name, n)
			var waits []time.Duration
			d.mu.Lock()
			for key, at := range scheduled {
				waits = append(waits, d.begun[key].Sub(at))
			}
			d.mu.Unlock()
			slices.Sort(waits)
			d.figure("a fresh task "+x.name+" begins, median", waits[n/2], x.target)
			d.figure("a fresh task "+x.name+" begins, the last of 200", waits[n-1], x.target)
			for _, p := range all {
				_ = p.Process.Kill()
				<-p.exited
			}
		}
	})
}
