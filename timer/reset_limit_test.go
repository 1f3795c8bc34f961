package timer

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A restart that finds no room unlocks its shard to look for some in the others.
// crossed has another goroutine's f run just then. There is room when f has
// returned.
func crossed(t *testing.T, s *Scheduler, home *shard, restart, f func()) {
	t.Helper()
	home.mu.Lock()
	id, err := home.startLocked(s.now(), time.Hour, funcPayload(func() {}), tagFunc)
	home.mu.Unlock()
	require.NoError(t, err)
	other := s.shards.at(1 - home.index)
	other.mu.Lock() // whoever looks for room stops here
	var wg sync.WaitGroup
	wg.Go(restart)
	for s.limit.supply.Load() != gathered {
		runtime.Gosched()
	}
	home.mu.Lock()
	require.True(t, home.stopLocked(id))
	home.unlock()
	f()
	other.mu.Unlock()
	wg.Wait()
}

func TestTimerReset_CrossedByOneDueAtOnce(t *testing.T) {
	s := New(WithShards(2), WithMaxPending(1))
	defer s.Close()
	tm := s.NewTimer(0)
	crossed(t, s, tm.sh,
		func() { tm.Reset(time.Hour) },
		func() { require.True(t, tm.Reset(0), "of the first value") })
	require.Empty(t, tm.C, "a value from before the Reset")
	require.Equal(t, 1, s.Len())
	require.True(t, tm.Stop())
}

func TestTimerReset_CrossedByOneThatWasStopped(t *testing.T) {
	s := New(WithShards(2), WithMaxPending(1))
	defer s.Close()
	tm := s.NewTimer(0)
	crossed(t, s, tm.sh,
		func() { tm.Reset(time.Hour) },
		func() {
			require.True(t, tm.Reset(time.Minute), "of the first value")
			require.True(t, tm.Stop())
		})
	require.Equal(t, 1, s.Len(), "the Reset came last")
	require.True(t, tm.Stop())
	st := s.Stats()
	require.Zero(t, st.FellBack)
	require.Equal(t, st.Started, st.Fired+st.Stopped)
}

// The period is that of whoever came last: so must the first tick be.
func TestTickerReset_CrossedByAnother(t *testing.T) {
	s := New(WithShards(2), WithMaxPending(1))
	defer s.Close()
	tk := s.NewTicker(time.Hour)
	tk.Stop()
	tk.c <- time.Time{}
	crossed(t, s, tk.sh,
		func() { tk.Reset(time.Hour) },
		func() { tk.Reset(time.Minute) })
	require.Equal(t, time.Hour, phase(t, tk))
	tk.Stop()
}

func TestTickerReset_TwoThatFindNoRoom(t *testing.T) {
	for range 100 {
		s := New(WithShards(2), WithMaxPending(1))
		tk := s.NewTicker(time.Hour)
		tk.Stop()
		var wg sync.WaitGroup
		crossed(t, s, tk.sh,
			func() { tk.Reset(time.Hour) },
			func() {
				tk.sh.mu.Lock()
				id, err := tk.sh.startLocked(s.now(), time.Hour, funcPayload(func() {}), tagFunc)
				tk.sh.unlock()
				require.NoError(t, err)
				wg.Go(func() { tk.Reset(time.Minute) })
				for range 100 {
					runtime.Gosched() // until it waits for the other
				}
				tk.sh.mu.Lock()
				require.True(t, tk.sh.stopLocked(id))
				tk.sh.unlock()
			})
		wg.Wait()
		period := phase(t, tk)
		require.True(t, period == time.Hour || period == time.Minute)
		s.Close()
	}
}

// phase returns the period of a Ticker that has not ticked yet, which must be when
// its first tick comes.
func phase(t *testing.T, tk *Ticker) time.Duration {
	tk.sh.mu.Lock()
	defer tk.sh.mu.Unlock()
	deadline, ok := tk.sh.wheel.Deadline(tk.id)
	require.True(t, ok)
	require.Equal(t, tk.next, deadline)
	require.LessOrEqual(t, deadline, tk.sh.s.now()+int64(tk.period))
	require.Greater(t, deadline, tk.sh.s.now()+int64(tk.period)-int64(30*time.Second))
	return tk.period
}
