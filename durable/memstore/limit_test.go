package memstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// Two workers claim tasks of a handler that is at its limit. Only one of them has the
// tasks' schedule. Their claims must not wake each other.
func TestLimit_WorkersWithDifferentSchedules(t *testing.T) {
	for name, limit := range map[string]store.Limit{"concurrency": {Concurrency: 1}, "rate": {Rate: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memstore.New()
				stamp := store.Stamp{Sender: "client"}
				change := func(op store.Op, x store.Item) {
					stamp.Number++
					_, err := st.Change(t.Context(), 0, stamp, store.Command{Op: op, Items: []store.Item{x}})
					require.NoError(t, err)
				}
				claim := func(schedules ...string) []store.Claimed {
					stamp.Number++
					a, err := st.Do(t.Context(), 0, stamp, store.Round{Lease: time.Hour, MaxCrashes: 3,
						Claim: store.Claim{Asked: true, Max: 5, Handlers: []string{"h"}, Schedules: schedules}})
					require.NoError(t, err)
					return a.Tasks
				}
				change(store.SetLimit, store.Item{ID: "h", Limit: &limit})
				for _, id := range []string{"a", "b"} {
					change(store.Schedule, store.Item{ID: id, Task: store.Task{ID: id, Handler: "h", Schedule: "s"}, When: store.After(0)})
				}
				require.Len(t, claim("s"), 1)

				var wakes atomic.Int32
				waiting, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _ = st.Wait(waiting, []int{0}, func(int) { wakes.Add(1) }) }()
				synctest.Wait()
				require.EqualValues(t, 1, wakes.Load(), "Wait itself must call wake once")
				for range 5 {
					require.Empty(t, claim())
					require.Empty(t, claim("s"))
				}
				synctest.Wait()
				require.EqualValues(t, 1, wakes.Load())
			})
		})
	}
}
