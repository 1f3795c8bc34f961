package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A workload returns figures of a side, by name.
type workload struct {
	name   string
	worker bool // it needs a side that works
	run    func(ctx context.Context, s *settings, x side) (map[string]float64, error)
	rows   []row
}

// A row is a line of the table: a figure of a workload.
type row struct {
	figure, title, unit string
	target              string
	digits              int
	less                bool // is better
}

var works = []workload{
	schedules("1", 1, 1, "from 1 caller", 0.8),
	schedules("64", 64, 1, "from 64 callers", 0.7),
	schedules("256", 256, 1, "from 256 callers", 0.7),
	schedules("batch", 1, 1000, "in batches of 1,000", 0.6),
	{"burst", true, burst, []row{{"rate", "due at once, handled and reported", "tasks/s", ">= 15,000, 0.8 x table", 0, false}}},
	{"late", true, late, []row{
		{"p50", "late at 1,000 a second, p50", "ms", "<= 2", 2, true},
		{"p99", "late at 1,000 a second, p99", "ms", "<= 10", 2, true},
		{"max", "late at 1,000 a second, max", "ms", "", 2, true},
	}},
}

func workNames() (names []string) {
	for _, w := range works {
		names = append(names, w.name)
	}
	return names
}

// body is one of 256 bytes, which begins with when the task is due.
func body(due time.Time) []byte {
	b := make([]byte, 256)
	binary.LittleEndian.PutUint64(b, uint64(due.UnixNano()))
	for i := 8; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rand.Uint64())
	}
	return b
}

func dueOf(b []byte) time.Time { return time.Unix(0, int64(binary.LittleEndian.Uint64(b))) }

// tasks returns n tasks, whose keys no others have.
func tasks(n int, due func() time.Time) []task {
	ts := make([]task, n)
	for i := range ts {
		at := due().Truncate(time.Microsecond)
		ts[i] = task{fmt.Sprintf("order-%016x", rand.Uint64()), at, body(at)}
	}
	return ts
}

// schedules is scheduling for the next 30 days by so many callers, who wait for each
// answer.
func schedules(name string, callers, size int, title string, target float64) workload {
	const month = 30 * 24 * time.Hour
	run := func(ctx context.Context, s *settings, x side) (map[string]float64, error) {
		begin := time.Now()
		later := func() time.Time { return begin.Add(time.Hour + rand.N(month)) }
		var done atomic.Int64
		var all sync.WaitGroup
		errs := make([]error, callers)
		end := begin.Add(s.time)
		for i := range callers {
			all.Go(func() {
				for time.Now().Before(end) && errs[i] == nil {
					errs[i] = x.schedule(ctx, tasks(size, later))
					done.Add(int64(size))
				}
			})
		}
		all.Wait()
		return map[string]float64{"rate": float64(done.Load()) / time.Since(begin).Seconds()}, errors.Join(errs...)
	}
	return workload{"schedule-" + name, false, run, []row{{"rate", "scheduled " + title, "tasks/s", fmt.Sprintf(">= %v x table", target), 0, false}}}
}

// fill schedules tasks in batches, by a few callers.
func fill(ctx context.Context, x side, ts []task) error {
	var all sync.WaitGroup
	batches := slices.Collect(slices.Chunk(ts, 1000))
	errs := make([]error, len(batches))
	var next atomic.Int64
	for range 4 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(batches); i = int(next.Add(1)) - 1 {
				errs[i] = x.schedule(ctx, batches[i])
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// burst has tasks due at one moment, and measures from then until the last of them has
// been handled and reported.
func burst(ctx context.Context, s *settings, x side) (map[string]float64, error) {
	due := time.Now().Add(time.Second + time.Duration(s.tasks)*150*time.Microsecond)
	if err := fill(ctx, x, tasks(s.tasks, func() time.Time { return due })); err != nil {
		return nil, err
	}
	if time.Now().After(due) {
		return nil, fmt.Errorf("scheduling %d tasks took too long: part of the burst was due before", s.tasks)
	}
	var handled atomic.Int64
	all := make(chan struct{})
	stop, err := x.work(func([]byte) {
		if handled.Add(1) == int64(s.tasks) {
			close(all)
		}
	})
	if err != nil {
		return nil, err
	}
	<-all
	for {
		n, err := x.left(ctx)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	took := time.Since(due)
	return map[string]float64{"rate": float64(s.tasks) / took.Seconds()}, stop()
}

// late has a thousand tasks due a second, at random, and measures how late their
// handlers begin.
func late(ctx context.Context, s *settings, x side) (map[string]float64, error) {
	n := int(1000 * (10 * s.time).Seconds())
	begin := time.Now().Add(time.Second + time.Duration(n)*150*time.Microsecond)
	var mu sync.Mutex
	var lates []time.Duration
	all := make(chan struct{})
	stop, err := x.work(func(b []byte) {
		late := time.Since(dueOf(b))
		mu.Lock()
		defer mu.Unlock()
		if lates = append(lates, late); len(lates) == n {
			close(all)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, x, tasks(n, func() time.Time { return begin.Add(rand.N(10 * s.time)) })); err != nil {
		return nil, err
	}
	<-all
	slices.Sort(lates)
	if lates[0] < 0 {
		return nil, fmt.Errorf("a task was %v early", -lates[0])
	}
	ms := func(i int) float64 { return float64(lates[i]) / float64(time.Millisecond) }
	return map[string]float64{"p50": ms(n / 2), "p99": ms(n * 99 / 100), "max": ms(n - 1)}, stop()
}
