package storetest

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Many clients schedule tasks that are due at once, each with a different record, while
// workers claim them. A claimed task keeps the record with which it was scheduled,
// whatever is scheduled later.
func testMixedUp(b *bench) {
	const clients, workers, each = 8, 2, 40
	record := func(id string) []byte { return bytes.Repeat([]byte(id+" "), 20) }
	got := make([][]store.Claimed, workers)
	var busy, all sync.WaitGroup
	var over atomic.Bool
	for c := range clients {
		busy.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d of %d", i, c)
				t := store.Task{ID: id, Handler: "h", Record: record(id)}
				x := store.Command{Op: store.Schedule, Items: []store.Item{{ID: id, When: store.After(0), Task: t}}}
				if _, err := b.Store.Change(ctx, 0, store.Stamp{Sender: fmt.Sprint("client", c), Number: int64(i + 1)}, x); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for w := range workers {
		all.Go(func() {
			s := store.Stamp{Sender: fmt.Sprint("worker", w)}
			for last := false; ; last = over.Load() {
				s.Number++
				r := b.claimOf(4)
				r.Lease = time.Hour // nothing comes twice
				a, err := b.Store.Do(ctx, 0, s, r)
				if err != nil {
					b.Error(err)
					return
				}
				got[w] = append(got[w], a.Tasks...)
				if last && len(a.Tasks) == 0 {
					return
				}
				runtime.Gosched()
			}
		})
	}
	busy.Wait()
	over.Store(true)
	all.Wait()
	n := 0
	for _, tasks := range got {
		for _, x := range tasks {
			b.require(bytes.Equal(x.Record, record(x.ID)), "the record of %s is %.40q", x.ID, x.Record)
			n++
		}
	}
	equal(b, "claimed", n, clients*each)
}
