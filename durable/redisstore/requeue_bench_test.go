package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

// BenchmarkRequeueAll requeues dead letters by the text of their error, half of all.
func BenchmarkRequeueAll(b *testing.B) {
	st := redisstore.New(redistest.Start(b).Client())
	defer st.Close()
	c := durable.New(st)
	task := durable.Item{Task: durable.Task{Key: "k", Handler: "h", Body: make([]byte, 256)}, When: durable.After(0)}
	stored, err := task.Stored()
	if err != nil {
		b.Fatal(err)
	}
	for number := int64(1); number <= int64(2*b.N/250+1); number++ {
		items := make([]store.Item, 250)
		for i := range items {
			text := "503 Service Unavailable"
			if i%2 == 0 {
				text = "no route to host"
			}
			e := &store.Entry{Task: stored.Task, State: store.Dead, At: 1_700_000_000_000_000 + store.Time(number), Attempts: 3, Failures: []store.Failure{{Attempt: 3, Text: text}}}
			e.ID = fmt.Sprintf("order-%016x", uint64(number*250+int64(i))*0x9e3779b97f4a7c15)
			items[i] = store.Item{ID: e.ID, Entry: e}
		}
		if _, err := st.Change(b.Context(), 0, store.Stamp{Sender: "s", Number: number}, store.Command{Op: store.Import, Items: items}); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	n, err := c.RequeueAll(b.Context(), durable.Filter{Error: "503"}, durable.After(0))
	if err != nil || n < b.N {
		b.Fatal(n, err)
	}
}
