package durable_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// history is what happened to one task. The mutex of the test's histories guards it.
type history struct {
	cancelled durable.Outcome // of the last Cancel, if there was one
	endedAt   int64           // the sequence number when Cancel had returned
	begun     []int64         // sequence numbers of the deliveries
	done      int
	failed    int
}

// Tasks are cancelled and rescheduled at random times, while some fail and one worker
// crashes again and again. Every task must run or be cancelled. None may start after a
// Cancel that returned Removed.
func TestProperty_CancelAndRescheduleRace(t *testing.T) {
	bubble(t, race)
}

func race(t *testing.T, mem *memstore.Store) {
	const n = 2000
	c := durable.New(mem, quiet)
	var mu sync.Mutex
	var seq int64
	all := make(map[string]*history, n)
	for i := range n {
		all[fmt.Sprint(i)] = &history{}
	}

	handle := func(ctx context.Context, d durable.Delivery) error {
		mu.Lock()
		seq++
		h := all[d.Key]
		h.begun = append(h.begun, seq)
		mu.Unlock()
		if rand.IntN(4) == 0 {
			select {
			case <-time.After(rand.N(30 * time.Millisecond)):
			case <-ctx.Done():
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if rand.IntN(3) == 0 {
			h.failed++
			return errors.New("tried again")
		}
		h.done++
		return nil
	}
	run, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	for range 2 {
		w := durable.NewWorker(c, durable.WithLease(10*time.Second), durable.WithMaxCrashes(1000), durable.WithMaxAttempts(1000),
			durable.WithBackoff(time.Millisecond, 10*time.Millisecond), durable.WithConcurrency(50))
		w.Handle("h", handle)
		background.Go(func() {
			if err := w.Run(run); err != nil {
				t.Error(err)
			}
		})
	}
	// This worker claims tasks and crashes, again and again.
	var crashed int
	background.Go(func() {
		for i := 0; run.Err() == nil; i++ {
			got, err := mem.Do(ctx, rand.IntN(mem.Shards()), store.Stamp{Sender: fmt.Sprint("crash", i), Number: 1}, store.Round{
				Claim: store.Claim{Asked: true, Max: 2, Handlers: []string{"h"}, Full: true},
				Lease: 50 * time.Millisecond, MaxCrashes: 1000,
			})
			if err != nil {
				t.Error(err)
				return
			}
			crashed += len(got.Tasks)
			time.Sleep(time.Millisecond)
		}
	})

	var clients sync.WaitGroup
	for part := range 8 {
		clients.Go(func() {
			for i := part; i < n; i += 8 {
				key := fmt.Sprint(i)
				if _, err := c.Schedule(ctx, durable.Task{Key: key, Handler: "h"}, durable.After(rand.N(50*time.Millisecond))); err != nil {
					t.Error(err)
				}
				time.Sleep(rand.N(time.Millisecond))
				other := fmt.Sprint(rand.IntN(i + 1))
				switch rand.IntN(4) {
				case 0:
					out, err := c.Cancel(ctx, other)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					seq++
					if h := all[other]; out != durable.Absent {
						h.cancelled, h.endedAt = out, seq
					}
					mu.Unlock()
				case 1:
					if _, err := c.Reschedule(ctx, other, durable.After(rand.N(50*time.Millisecond))); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	clients.Wait()
	require.Eventually(t, func() bool {
		st, err := c.Stats(ctx)
		return err == nil && st.Pending+st.Running+st.Dead == 0
	}, time.Minute, 20*time.Millisecond, "nothing is stuck")
	stop()
	background.Wait()

	rep, err := c.Repair(ctx)
	require.NoError(t, err)
	require.Equal(t, durable.Repair{}, rep, "Repair found something to correct")
	st, err := c.Stats(ctx)
	require.NoError(t, err)
	require.GreaterOrEqual(t, st.Crashed, int64(crashed/2), "most crashes were counted")
	require.NotZero(t, crashed)

	mu.Lock()
	defer mu.Unlock()
	count := make(map[durable.Outcome]int)
	for key, h := range all {
		count[h.cancelled]++
		switch h.cancelled {
		case durable.Unknown:
			require.NotZero(t, h.done, "task %s was not cancelled and has not run", key)
		case durable.Removed:
			for _, at := range h.begun {
				// A handler records its start a little after its claim. If the claim
				// came before the Cancel, Cancel returned durable.Stopping.
				require.Less(t, at, h.endedAt, "task %s has begun after it was removed", key)
			}
		}
	}
	require.NotZero(t, count[durable.Removed])
	require.NotZero(t, count[durable.Stopping])
	t.Logf("%v, crashed with %d tasks, %+v", count, crashed, st)
}
