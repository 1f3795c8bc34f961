package sqlitestore_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/sqlitestore"
)

// idleChild runs a worker whose only task is due tomorrow. It prints how often the
// process's threads wake up in three seconds.
func idleChild(path string) error {
	st, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	if _, err := durable.New(st).Schedule(context.Background(), durable.Task{Key: "k", Handler: "h"}, durable.After(24*time.Hour)); err != nil {
		return err
	}
	w := worker(st, func(durable.Delivery) {})
	go func() { _ = w.Run(context.Background()) }()
	time.Sleep(5 * time.Second) // after a commit watchOtherCommits pauses longer each time
	before := switches()
	time.Sleep(3 * time.Second)
	os.Stdout.WriteString(strconv.Itoa(switches()-before) + "\n")
	return nil
}

var voluntary = regexp.MustCompile(`(?m)^voluntary_ctxt_switches:\s*(\d+)`)

func switches() (all int) {
	files, _ := filepath.Glob("/proc/self/task/*/status")
	for _, name := range files {
		text, _ := os.ReadFile(name)
		if f := voluntary.FindSubmatch(text); f != nil {
			n, _ := strconv.Atoi(string(f[1]))
			all += n
		}
	}
	return all
}

func init() { children["idle"] = idleChild }

// An idle Store does not wake up. The measurement and the Go runtime cause a few context
// switches, and more on a busy machine.
func TestIdle(t *testing.T) {
	if !long() {
		t.Skip("set TICKLESS_CHAOS=long on an idle machine to run it")
	}
	said := make(chan string, 1)
	start(t, "idle", filepath.Join(t.TempDir(), "tasks.db"), func(line string) { said <- line })
	n, err := strconv.Atoi(<-said)
	require.NoError(t, err)
	t.Logf("%d switches in 3s", n)
	require.Less(t, n, 30)
}
