package sqlitestore_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/sqlitestore"
)

// Some tests start the test binary as another process. It runs the function named by
// TICKLESS_CHILD on the file TICKLESS_FILE.
func TestMain(m *testing.M) {
	if name := os.Getenv("TICKLESS_CHILD"); name != "" {
		if err := children[name](os.Getenv("TICKLESS_FILE")); err != nil {
			fmt.Fprintln(os.Stderr, name, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var children = map[string]func(path string) error{
	"client": clientChild,
	"worker": workerChild,
	"writer": writerChild,
	"one":    oneChild,
	"faulty": faultyChild,
	"fill":   fillChild,
	"large":  largeChild,
	"nobody": nobodyChild,
	"serve":  serveChild,
	"holds":  holdChild,
}

// long reports whether the fault tests run at full length.
func long() bool { return os.Getenv("TICKLESS_CHAOS") == "long" }

// start starts a child and calls line for each line that the child prints.
func start(t *testing.T, name, path string, line func(string), wrap ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	if len(wrap) > 0 {
		cmd = exec.Command(wrap[0], append(wrap[1:], os.Args[0])...)
	}
	cmd.Env = append(os.Environ(), "TICKLESS_CHILD="+name, "TICKLESS_FILE="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var all sync.WaitGroup
	all.Go(func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			line(s.Text())
		}
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		all.Wait()
		_ = cmd.Wait()
	})
	return cmd
}

// clientChild schedules tasks, and prints each key before and after its
// acknowledgement.
func clientChild(path string) error {
	st, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	c := durable.New(st)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				key := fmt.Sprintf("%016x", rand.Uint64())
				d := rand.N(50 * time.Millisecond)
				due := time.Now().Add(d)
				if _, err := c.Schedule(context.Background(), durable.Task{Key: key, Handler: "h", Body: []byte(due.Format(time.RFC3339Nano))}, durable.At(due)); err == nil {
					fmt.Println("acknowledged", key)
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	all.Wait()
	return nil
}

// workerChild runs tasks. It prints their keys, and whether they ran early.
func workerChild(path string) error {
	st, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	w := worker(st, func(d durable.Delivery) { fmt.Println("ran", d.Key, os.Getpid()) })
	return w.Run(context.Background())
}

func worker(st *sqlitestore.Store, ran func(d durable.Delivery)) *durable.Worker {
	w := durable.NewWorker(durable.New(st), durable.WithLease(3*time.Second), durable.WithMaxCrashes(1000))
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		if due, err := time.Parse(time.RFC3339Nano, string(d.Body)); err != nil || time.Now().Before(due) {
			fmt.Println("early", d.Key)
		}
		ran(d)
		return nil
	})
	return w
}

// TestLives kills workers and a client of a file at random. Acknowledged tasks must run,
// and only tasks of killed workers may run twice.
func TestLives(t *testing.T) {
	lives := 9
	if long() {
		lives = 100
	}
	path := filepath.Join(t.TempDir(), "tasks.db")
	var mu sync.Mutex
	acknowledged, ran := map[string]bool{}, map[string][]string{} // ran has the processes that ran each key
	killed, by := map[string]bool{}, map[string]bool{}            // processes, by that ran some
	var wrong []string
	take := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "acknowledged":
			acknowledged[f[1]] = true
		case len(f) == 3 && f[0] == "ran":
			for _, pid := range ran[f[1]] {
				if !killed[pid] {
					wrong = append(wrong, "again without a kill: "+line)
				}
			}
			ran[f[1]] = append(ran[f[1]], f[2])
			by[f[2]] = true
		case len(f) == 2 && f[0] == "early":
			wrong = append(wrong, line)
		}
	}
	names := []string{"worker", "worker", "client"}
	var now []*exec.Cmd
	for _, name := range names {
		now = append(now, start(t, name, path, take))
	}
	for begun := false; !begun; time.Sleep(time.Millisecond) {
		mu.Lock()
		begun = len(acknowledged) > 0 && len(by) > 0
		mu.Unlock()
	}
	kill := func(x *exec.Cmd) {
		mu.Lock()
		defer mu.Unlock()
		killed[fmt.Sprint(x.Process.Pid)] = true
		require.NoError(t, x.Process.Kill())
	}
	for i := range lives {
		time.Sleep(50*time.Millisecond + rand.N(300*time.Millisecond))
		kill(now[i%3])
		now[i%3] = start(t, names[i%3], path, take)
	}
	time.Sleep(300 * time.Millisecond)
	for _, x := range now {
		kill(x)
		_, _ = x.Process.Wait()
	}
	time.Sleep(100 * time.Millisecond) // the last lines of the processes
	st, err := sqlitestore.Open(path)
	require.NoError(t, err)
	defer st.Close()
	last := worker(st, func(d durable.Delivery) { take(fmt.Sprint("ran ", d.Key, " last")) })
	ended := make(chan error, 1)
	go func() { ended <- last.Run(context.Background()) }()
	require.Eventually(t, func() bool {
		n, err := st.Stats(t.Context(), 0)
		require.NoError(t, err)
		require.Zero(t, n.Dead)
		return n.Pending+n.Running == 0
	}, 30*time.Second, 20*time.Millisecond)
	require.NoError(t, last.Shutdown(t.Context()))
	require.NoError(t, <-ended)
	_, err = st.Verify(t.Context())
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, wrong)
	for key := range acknowledged {
		require.NotEmpty(t, ran[key], "lost: %s", key)
	}
	twice := 0
	for _, pids := range ran {
		if len(pids) > 1 {
			twice++
		}
	}
	t.Logf("%d lives, %d acknowledged, %d ran twice, %d processes ran some", lives, len(acknowledged), twice, len(by))
}

// writerChild schedules tasks as fast as it can. It prints their number, and the longest
// duration of a call.
func writerChild(path string) error {
	st, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	c := durable.New(st)
	fmt.Println("ready")
	var longest time.Duration
	n := 0
	for begin := time.Now(); time.Since(begin) < 2*time.Second; n++ {
		b := time.Now()
		if _, err := c.Schedule(context.Background(), durable.Task{Key: fmt.Sprintf("%016x", rand.Uint64()), Handler: "h"}, durable.After(time.Hour)); err != nil {
			return err
		}
		longest = max(longest, time.Since(b))
	}
	fmt.Println("wrote", n, longest.Microseconds())
	return st.Close()
}

// TestTwoWriters checks that each of two writing processes gets its share.
func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	st, err := sqlitestore.Open(path)
	require.NoError(t, err)
	defer st.Close()
	wrote := make(chan [2]int64, 2)
	for range 2 {
		start(t, "writer", path, func(line string) {
			var x [2]int64
			if n, _ := fmt.Sscanf(line, "wrote %d %d", &x[0], &x[1]); n == 2 {
				wrote <- x
			}
		})
	}
	a, b := <-wrote, <-wrote
	share := float64(min(a[0], b[0])) / float64(a[0]+b[0])
	t.Logf("the smaller share is %.2f of %d, the longest wait %v", share, a[0]+b[0], time.Duration(max(a[1], b[1]))*time.Microsecond)
	require.Greater(t, share, 0.2)
	n, err := st.Verify(t.Context())
	require.NoError(t, err)
	require.Equal(t, a[0]+b[0], n)
}

// oneChild waits briefly, and then schedules one task.
func oneChild(path string) error {
	st, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond)
	_, err = durable.New(st).Schedule(context.Background(), durable.Task{Key: "k", Handler: "h", Body: []byte(time.Now().Format(time.RFC3339Nano))}, durable.After(0))
	fmt.Println("acknowledged", time.Now().UnixMicro())
	if err != nil {
		return err
	}
	return st.Close()
}

// In TestAnotherProcess another process schedules a task in the file of an idle worker.
func TestAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	st, err := sqlitestore.Open(path)
	require.NoError(t, err)
	defer st.Close()
	came := make(chan time.Time, 1)
	w := worker(st, func(durable.Delivery) { came <- time.Now() })
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	acknowledged := make(chan time.Time, 1)
	start(t, "one", path, func(line string) {
		var us int64
		if n, _ := fmt.Sscanf(line, "acknowledged %d", &us); n == 1 {
			acknowledged <- time.UnixMicro(us)
		}
	})
	select {
	case at := <-came:
		t.Logf("noticed in %v", at.Sub(<-acknowledged))
	case <-time.After(10 * time.Second):
		t.Fatal("the worker has not noticed the task of the other process")
	}
	require.NoError(t, w.Shutdown(t.Context()))
	require.NoError(t, <-ended)
}
