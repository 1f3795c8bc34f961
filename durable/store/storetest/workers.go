package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// testWorkers runs clients that schedule tasks, and workers that race for them and sometimes
// crash. Every task must be done once, its tokens must grow, and its record must not change.
func testWorkers(b *storeTest) {
	const clients, tasksPerClient, workers = 8, 50, 6
	shards := b.Store.Shards()
	x := &workerRun{storeTest: b, lastToken: make(map[string]int64), timesDone: make(map[string]int)}
	recordOf := func(id string) []byte { return bytes.Repeat([]byte(id+" "), 20) }
	var clock, all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := range tasksPerClient {
				id := fmt.Sprintf("%d of %d", i, c)
				t := store.Task{ID: id, Handler: "h", Record: recordOf(id)}
				item := store.Item{ID: id, When: store.After(time.Duration(rand.IntN(20)) * b.unit / 10), Task: t}
				_, err := b.Store.Change(ctx, store.ShardOf(id, shards), store.Stamp{Sender: fmt.Sprint("client", c), Number: int64(i + 1)},
					store.Command{Op: store.Schedule, Items: []store.Item{item}})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	stopClock := make(chan struct{})
	if b.Advance != nil {
		clock.Go(func() {
			for {
				select {
				case <-stopClock:
					return
				default:
					b.Advance(b.unit / 10)
					time.Sleep(10 * time.Microsecond)
				}
			}
		})
	}
	for w := range workers {
		all.Go(func() { x.runWorker(w, shards, clients*tasksPerClient) })
	}
	all.Wait()
	close(stopClock)
	clock.Wait()
	if b.Failed() {
		return
	}
	equal(b, "tasks done", len(x.timesDone), clients*tasksPerClient)
	for id, n := range x.timesDone {
		equal(b, id+" was done", n, 1)
	}
	for _, c := range x.claimedTasks {
		b.require(bytes.Equal(c.Record, recordOf(c.ID)), "the record of %s is %.40q", c.ID, c.Record)
	}
	for shard := range shards {
		st, err := b.Store.Stats(ctx, shard)
		b.requireNoError(err)
		equal(b, "remaining tasks", st.Pending+st.Running+st.Dead, 0)
	}
	b.Logf("%d leases lost", x.lostLeases.Load())
}

type workerRun struct {
	*storeTest
	lostLeases   atomic.Int64
	mu           sync.Mutex
	lastToken    map[string]int64 // the latest token of each task
	timesDone    map[string]int
	claimedTasks []store.Claimed
}

func (x *workerRun) runWorker(w, shards, tasks int) {
	var lastNumbers = make([]int64, shards)
	deadline := time.Now().Add(4 * maxWait)
	for i := 0; ; i++ {
		shard := (i + w) % shards
		x.mu.Lock()
		n := len(x.timesDone)
		x.mu.Unlock()
		if n == tasks || x.Failed() {
			return
		}
		if time.Now().After(deadline) {
			x.Errorf("%d of %d tasks were done", n, tasks)
			return
		}
		do := func(r store.Round) (a store.Answer, ok bool) {
			lastNumbers[shard]++
			r.MaxCrashes = 1 << 20
			a, err := x.Store.Do(ctx, shard, store.Stamp{Sender: fmt.Sprint("worker", w), Number: lastNumbers[shard]}, r)
			if err != nil {
				x.Error(err)
			}
			return a, err == nil
		}
		a, ok := do(x.claimRound(1 + rand.IntN(5)))
		if !ok {
			return
		}
		r := x.emptyRound()
		for _, c := range a.Tasks {
			x.mu.Lock()
			// After the lease has expired, another worker may already have recorded
			// a larger token.
			if now, err := x.Store.Now(ctx, shard); c.Token <= x.lastToken[c.ID] && err == nil && now < a.Now.Add(leaseUnits*x.unit) {
				x.Errorf("%s has the token %d after %d", c.ID, c.Token, x.lastToken[c.ID])
			}
			x.lastToken[c.ID] = max(x.lastToken[c.ID], c.Token)
			x.claimedTasks = append(x.claimedTasks, c)
			x.mu.Unlock()
			if c.Due > a.Now {
				x.Errorf("%s is early by %v", c.ID, c.Due.Sub(a.Now))
			}
			report := store.Report{Lease: leaseOf(c), End: store.Done, Due: c.Due}
			switch rand.IntN(10) {
			case 0: // a crash
				x.lostLeases.Add(1)
				continue
			case 1:
				report.End, report.Next = store.Retry, store.After(0)
			case 2:
				report.End = store.HandBack
			}
			r.Reports = append(r.Reports, report)
		}
		if a, ok = do(r); !ok {
			return
		}
		x.mu.Lock()
		for i, receipt := range a.Receipts {
			if receipt == store.Refused {
				x.lostLeases.Add(1)
			} else if r.Reports[i].End == store.Done {
				x.timesDone[r.Reports[i].ID]++
			}
		}
		x.mu.Unlock()
	}
}
