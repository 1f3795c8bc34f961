package diskstore_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
)

// TestMain is a worker process if it is asked to be one.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TICKLESS_DISKSTORE_CHILD"); dir != "" {
		if mode := os.Getenv("TICKLESS_DISKSTORE_MODE"); mode != "" {
			runAs(mode, dir, os.Getenv("TICKLESS_DISKSTORE_RUN"))
		}
		if mode := os.Getenv("TICKLESS_DISKSTORE_LARGE"); mode != "" {
			large(dir, mode)
		}
		child(dir, os.Getenv("TICKLESS_DISKSTORE_RUN"))
		return
	}
	code := m.Run()
	if err := writeFaults(); err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// child schedules tasks from several goroutines, some by batches, and runs them, until
// it is killed. It prints what it was acknowledged, and which handlers were run.
func child(dir, run string) {
	s, err := diskstore.Open(dir)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("open")
	c := durable.New(s)
	var out sync.Mutex
	say := func(text string) {
		out.Lock()
		defer out.Unlock()
		_, _ = os.Stdout.WriteString(text) // one write, whole or not at all
	}
	w := durable.NewWorker(c, durable.WithLease(100*time.Millisecond), durable.WithMaxCrashes(1<<20))
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		say("ran " + d.Key + "\n")
		return nil
	})
	for g := range 8 {
		go func() {
			for i := 0; ; i++ {
				var items []durable.Item
				text := ""
				for j := range 1 + g*g {
					key := fmt.Sprintf("%s-%d-%d-%d", run, g, i, j)
					items = append(items, durable.Item{Task: durable.Task{Key: key, Handler: "h"}, When: durable.After(time.Duration(rand.IntN(300)) * time.Millisecond)})
					text += "ack " + key + "\n"
				}
				if _, err := c.ScheduleBatch(context.Background(), items); err != nil {
					say("error " + err.Error() + "\n")
					os.Exit(1)
				}
				say(text)
				time.Sleep(time.Millisecond)
			}
		}()
	}
	_ = w.Run(context.Background())
}

// TestKill kills a process with -9 that schedules and runs tasks, again and again. What
// it had acknowledged is run, then or by the next one. It says nothing of the sync:
// TestCrash does.
func TestKill(t *testing.T) {
	begins(t)
	if os.Getenv("TICKLESS_CHAOS") == "off" {
		t.Skip("TICKLESS_CHAOS is off")
	}
	times := 3
	if long() {
		times = 100
	}
	dir := t.TempDir() + "/store"
	acked, ran := make(map[string]bool), make(map[string]int)
	var mu sync.Mutex
	for i := range times {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TICKLESS_DISKSTORE_CHILD="+dir, fmt.Sprint("TICKLESS_DISKSTORE_RUN=", i))
		cmd.Stderr = os.Stderr
		pipe, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		begun, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			first := true
			for in := bufio.NewScanner(pipe); in.Scan(); {
				word, key, _ := strings.Cut(in.Text(), " ")
				mu.Lock()
				switch word {
				case "open":
				case "ack":
					acked[key] = true
					if first {
						first = false
						close(begun)
					}
				case "ran":
					ran[key]++
				default:
					t.Error(in.Text())
				}
				mu.Unlock()
			}
		}()
		select {
		case <-begun:
		case <-ended:
			t.Fatal("it did not begin")
		}
		time.Sleep(time.Duration(50+rand.IntN(300)) * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		<-ended
		require.Error(t, cmd.Wait()) // killed
	}
	// Whoever comes last runs what is left.
	s, err := diskstore.Open(dir)
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Verify(t.Context())
	require.NoError(t, err)
	c := durable.New(s)
	w := durable.NewWorker(c, durable.WithLease(100*time.Millisecond), durable.WithMaxCrashes(1<<20))
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		ran[d.Key]++
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	for {
		st, err := c.Stats(t.Context())
		require.NoError(t, err)
		if st.Pending+st.Running == 0 {
			require.Zero(t, st.Dead)
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	require.NoError(t, <-over)
	more := 0
	for key := range acked {
		require.NotZero(t, ran[key], "%s was acknowledged and not run", key)
	}
	for _, n := range ran {
		more += n - 1
	}
	note(t, "a process that schedules and runs tasks killed with -9, %d times; %d acknowledged, none lost, %d deliveries beyond the first", times, len(acked), more)
	require.NotEmpty(t, acked)
}
