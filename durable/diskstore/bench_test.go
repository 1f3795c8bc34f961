package diskstore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
)

// payload is that of a task of 256 bytes.
var payload = func() []byte {
	b := make([]byte, 256)
	x := uint64(88172645463325252)
	for i := range b { // bytes that do not compress
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}()

// BenchmarkSchedule is tasks scheduled and synced: by a number of callers, one task at a
// time, or by one in batches of 1,000. Bare is Pebble, with the default options but for a
// larger memtable, writing a value and an index key for each.
func BenchmarkSchedule(b *testing.B) {
	for _, impl := range []struct {
		name string
		open func(b *testing.B) (schedule func(ids []string))
	}{{"bare", bareSchedule}, {"diskstore", storeSchedule}} {
		for _, load := range []struct{ callers, batch int }{{1, 1}, {64, 1}, {256, 1}, {1, 1000}} {
			b.Run(fmt.Sprintf("impl=%s/callers=%d/batch=%d", impl.name, load.callers, load.batch), func(b *testing.B) {
				schedule := impl.open(b)
				var next atomic.Int64
				var all sync.WaitGroup
				begin := time.Now()
				for range load.callers {
					all.Go(func() {
						ids := make([]string, load.batch)
						for {
							n := int(next.Add(1))
							if n > b.N {
								return
							}
							for i := range ids {
								ids[i] = fmt.Sprintf("task-%08d", n*load.batch+i)
							}
							schedule(ids)
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64(b.N*load.batch)/time.Since(begin).Seconds(), "tasks/s")
			})
		}
	}
}

func bareSchedule(b *testing.B) func(ids []string) {
	db, err := pebble.Open(b.TempDir(), &pebble.Options{MemTableSize: 64 << 20, Logger: quiet{}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	due := uint64(time.Now().Add(24 * time.Hour).UnixMicro())
	value := append(make([]byte, 24), payload...)
	return func(ids []string) {
		batch := db.NewBatch()
		for i, id := range ids {
			key := append(make([]byte, 0, 32), "00t"...)
			require.NoError(b, batch.Set(append(key, id...), value, nil))
			key = binary.BigEndian.AppendUint64(append(key[:0], "00p0000"...), due+uint64(i))
			require.NoError(b, batch.Set(append(key, id...), nil, nil))
		}
		require.NoError(b, batch.Commit(pebble.Sync))
		require.NoError(b, batch.Close())
	}
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(string, ...any) { panic("fatal") }

func storeSchedule(b *testing.B) func(ids []string) {
	s, err := diskstore.Open(b.TempDir())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	c := durable.New(s)
	return func(ids []string) {
		if len(ids) == 1 {
			_, err := c.Schedule(context.Background(), durable.Task{Key: ids[0], Handler: "h", Body: payload}, durable.After(24*time.Hour))
			require.NoError(b, err)
			return
		}
		items := make([]durable.Item, len(ids))
		for i, id := range ids {
			items[i] = durable.Item{Task: durable.Task{Key: id, Handler: "h", Body: payload}, When: durable.After(24 * time.Hour)}
		}
		_, err := c.ScheduleBatch(context.Background(), items)
		require.NoError(b, err)
	}
}

// BenchmarkDrain is tasks that are due at once, and a handler that does nothing.
func BenchmarkDrain(b *testing.B) {
	const n = 100_000
	for range b.N {
		s, err := diskstore.Open(b.TempDir())
		require.NoError(b, err)
		c := durable.New(s)
		items := make([]durable.Item, 0, 1000)
		for i := range n {
			items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprint("task-", i), Handler: "h", Body: payload}, When: durable.After(0)})
			if len(items) == cap(items) {
				_, err := c.ScheduleBatch(context.Background(), items)
				require.NoError(b, err)
				items = items[:0]
			}
		}
		var left atomic.Int64
		left.Store(n)
		done := make(chan struct{})
		w := durable.NewWorker(c)
		w.Handle("h", func(context.Context, durable.Delivery) error {
			if left.Add(-1) == 0 {
				close(done)
			}
			return nil
		})
		begin := time.Now()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		<-done
		b.ReportMetric(n/time.Since(begin).Seconds(), "tasks/s")
		cancel()
		require.NoError(b, <-ended)
		require.NoError(b, s.Close())
	}
}
