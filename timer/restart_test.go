package timer

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A restart that finds no room unlocks its shard to look for some in the others.
// crossed has another goroutine's f run just then. c holds a value: once the
// restart has withdrawn it, the lock is next free in that gap. There is room
// when f has returned.
func crossed(t *testing.T, s *Scheduler, home *shard, c chan time.Time, restart, f func()) {
	t.Helper()
	home.mu.Lock()
	id, err := home.startLocked(s.now(), time.Hour, funcPayload(func() {}), tagFunc)
	home.mu.Unlock()
	require.NoError(t, err)
	other := s.shards[1-home.index]
	other.mu.Lock() // whoever looks for room stops here
	var wg sync.WaitGroup
	wg.Go(restart)
	for len(c) > 0 {
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
	crossed(t, s, tm.sh, tm.p.channel(),
		func() { tm.Reset(time.Hour) },
		func() { require.False(t, tm.Reset(0)) })
	require.Empty(t, tm.C, "a value from before the Reset")
	require.Equal(t, 1, s.Len())
	require.True(t, tm.Stop())
}

func TestTimerReset_CrossedByOneThatWasStopped(t *testing.T) {
	s := New(WithShards(2), WithMaxPending(1))
	defer s.Close()
	tm := s.NewTimer(0)
	crossed(t, s, tm.sh, tm.p.channel(),
		func() { tm.Reset(time.Hour) },
		func() {
			require.False(t, tm.Reset(time.Minute))
			require.True(t, tm.Stop())
		})
	require.Zero(t, s.Len(), "the Stop came last")
	st := s.Stats()
	require.Zero(t, st.Rejected)
	require.Equal(t, st.Started, st.Fired+st.Stopped)
}

// The period is the other's: so must the first tick be.
func TestTickerReset_CrossedByAnother(t *testing.T) {
	s := New(WithShards(2), WithMaxPending(1))
	defer s.Close()
	tk := s.NewTicker(time.Hour)
	tk.Stop()
	tk.c <- time.Time{}
	crossed(t, s, tk.sh, tk.c,
		func() { tk.Reset(time.Hour) },
		func() { tk.Reset(time.Minute) })
	tk.sh.mu.Lock()
	deadline, ok := tk.sh.wheel.Deadline(tk.id)
	period, next := tk.period, tk.next
	tk.sh.mu.Unlock()
	require.True(t, ok)
	require.Equal(t, time.Minute, period)
	require.Equal(t, next, deadline)
	require.Less(t, deadline, int64(time.Hour))
	tk.Stop()
}
