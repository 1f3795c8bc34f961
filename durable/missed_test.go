package durable_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// times is a schedule of n times. Each is one step after the time given.
type times struct {
	mu   sync.Mutex // several workers may share the value
	n    int
	step time.Duration
}

func (s *times) Next(t time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		return time.Time{}
	}
	s.n--
	return t.Add(s.step)
}

func TestWorker_MissedRuns(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		ds := make(deliveries, 1000)
		ago := time.Now().Add(-10*time.Hour - 30*time.Minute).Truncate(time.Microsecond)
		for _, x := range []durable.Task{
			{Key: "fire", Every: time.Hour, Missed: durable.FireMissed},
			{Key: "latest", Every: time.Hour},
			{Key: "dead", Every: time.Hour, Missed: durable.DeadMissed, MissedAfter: 100 * time.Minute},
			{Key: "once", Missed: durable.DeadMissed, MissedAfter: time.Hour},
			{Key: "once, in time", Missed: durable.DeadMissed, MissedAfter: 24 * time.Hour},
			{Key: "once, latest", Missed: durable.LatestMissed},
		} {
			schedule(t, c, x, durable.At(ago))
		}
		w := durable.NewWorker(c)
		w.Handle("h", ds.handle)
		start(t, w)
		got := make(map[string][]int) // hours after ago
		for range 11 + 1 + 2 + 0 + 1 + 1 {
			d := ds.next(t)
			got[d.Key] = append(got[d.Key], int(d.Due.Sub(ago).Hours()))
		}
		require.Equal(t, map[string][]int{
			"fire":          {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
			"latest":        {10},
			"dead":          {9, 10},
			"once, in time": {0},
			"once, latest":  {0},
		}, got)
		for _, key := range []string{"fire", "latest", "dead"} {
			info := becomes(t, c, key, durable.Pending)
			require.Equal(t, ago.Add(11*time.Hour), info.At, key)
		}
		died := make(map[string]int)
		for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			require.NoError(t, err)
			died[d.Task.Key] += d.Runs
			require.Contains(t, d.Failures[0].Error, "missed")
			require.Zero(t, d.Attempts, "the handler was not called")
			require.Zero(t, d.Failures[0].Attempt)
			require.Zero(t, d.Task.Every, "a dead run does not repeat when it is requeued")
		}
		require.Equal(t, map[string]int{"dead": 9, "once": 1}, died)
		require.Empty(t, ds)
	})
}

// All attempts fail for two hours. The task must run soon after that.
func TestWorker_ARepeatingTaskIsBackSoonAfterAnOutage(t *testing.T) {
	for name, task := range map[string]durable.Task{
		"every":    {Key: "k", Every: time.Minute},
		"schedule": {Key: "k", Schedule: "minutes"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, mem *memstore.Store) {
				c := durable.New(mem, quiet, durable.WithSchedule("minutes", &times{n: 1 << 30, step: time.Minute}))
				w := durable.NewWorker(c)
				end := time.Now().Add(2 * time.Hour)
				var after []time.Duration // the end
				w.Handle("h", func(context.Context, durable.Delivery) error {
					if time.Now().Before(end) {
						return errors.New("down")
					}
					after = append(after, time.Since(end))
					return nil
				})
				start(t, w)
				schedule(t, c, task, durable.After(0))
				time.Sleep(2*time.Hour + 10*time.Minute)
				synctest.Wait()
				require.LessOrEqual(t, after[0], time.Minute)
				require.InDelta(t, 11, len(after), 1, "one run a minute, and one for all that were missed")
			})
		})
	}
}

func TestWorker_CountsRunsThatAreSlowerThanTheirPeriod(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		runs := 0
		w.Handle("h", func(context.Context, durable.Delivery) error {
			if runs++; runs == 2 {
				time.Sleep(150 * time.Second)
			}
			return nil
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", Every: time.Minute}, durable.After(0))
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		require.Equal(t, 10, runs, "a run each minute from 0 to 10, without the one at 2")
		require.EqualValues(t, 1, w.HandlerStats()[0].Overran)
	})
}
