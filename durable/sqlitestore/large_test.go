package sqlitestore_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
)

// TestLarge measures a file with TICKLESS_LARGE pending tasks and a log of 64 MB, after a
// kill -9.
func TestLarge(t *testing.T) {
	if os.Getenv("TICKLESS_LARGE") == "" {
		t.Skip("set TICKLESS_LARGE to a number of tasks to run it")
	}
	dir, err := os.MkdirTemp(os.Getenv("TICKLESS_LARGE_DIR"), "large")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "tasks.db")
	filled := make(chan bool)
	filler := start(t, "fill", path, func(string) { close(filled) })
	<-filled
	require.NoError(t, filler.Process.Kill())
	_, _ = filler.Process.Wait()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TICKLESS_CHILD=large", "TICKLESS_FILE="+path)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	t.Logf("%s", text)
}

// fillChild fills a file with tasks, and leaves a log of 64 MB.
func fillChild(path string) error {
	n, err := strconv.Atoi(os.Getenv("TICKLESS_LARGE"))
	if err != nil {
		return err
	}
	st, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	c, body, later := durable.New(st), make([]byte, 256), time.Now().Add(time.Hour)
	batch := func(from int) error {
		var items []durable.Item
		for i := from; i < from+1000; i++ {
			key := fmt.Sprintf("tenant%02d/order-%08d", i%100, i)
			items = append(items, durable.Item{Task: durable.Task{Key: key, Handler: "h", Body: body}, When: durable.At(later.Add(time.Duration(i*7919%n) * time.Second))})
		}
		_, err := c.ScheduleBatch(context.Background(), items)
		return err
	}
	i := 0
	for ; i < n; i += 1000 {
		if err := batch(i); err != nil {
			return err
		}
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	var some string
	rows, err := db.Query(`SELECT id FROM tickless_tasks`) // while the query is open, the log grows
	if err != nil || !rows.Next() || rows.Scan(&some) != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	for ; st.WAL() < 70<<20; i += 1000 {
		if err := batch(i); err != nil {
			return err
		}
	}
	fmt.Println("filled")
	time.Sleep(time.Hour) // the runtime may report a deadlock for select {}
	return nil
}

// largeChild opens the file, and prints how long each operation takes.
func largeChild(path string) error {
	say := func(what string, begin time.Time) { fmt.Printf("%s: %v\n", what, time.Since(begin)) }
	if info, err := os.Stat(path + "-wal"); err == nil {
		fmt.Println("log:", info.Size()>>20, "MB")
	}
	begin := time.Now()
	st, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	n, err := st.Stats(context.Background(), 0)
	if err != nil {
		return err
	}
	say(fmt.Sprintf("opened, with %d pending", n.Pending), begin)
	for _, prefix := range []string{"tenant42/", "tenant42/order-0001", "t"} {
		begin = time.Now()
		p, err := st.List(context.Background(), 0, store.Filter{Prefix: prefix}, store.Cursor{}, 100)
		if err != nil {
			return err
		}
		say(fmt.Sprintf("first page of %d by the prefix %s", len(p.Entries), prefix), begin)
	}
	var all sync.WaitGroup
	for i := range 6 { // all connections read at once
		all.Go(func() {
			for j := range 20 {
				_, err = st.List(context.Background(), 0, store.Filter{Prefix: fmt.Sprintf("tenant%02d/", i*16+j%10)}, store.Cursor{}, 1000)
			}
		})
	}
	all.Wait()
	w := worker(st, func(d durable.Delivery) {
		due, _ := time.Parse(time.RFC3339Nano, string(d.Body))
		say("one new task was late by", due)
	})
	go func() { _ = w.Run(context.Background()) }()
	time.Sleep(time.Second)
	for i := range 5 {
		due := time.Now().Add(50 * time.Millisecond)
		if _, err := durable.New(st).Schedule(context.Background(), durable.Task{Key: fmt.Sprint("new", i), Handler: "h", Body: []byte(due.Format(time.RFC3339Nano))}, durable.At(due)); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "VmHWM") || strings.HasPrefix(s.Text(), "VmRSS") {
			fmt.Println(s.Text())
		}
	}
	return nil
}
