package timer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// allShards makes all shards of s and returns them.
func allShards(s *Scheduler) []*shard {
	all := make([]*shard, s.config.shards)
	for i := range all {
		all[i] = s.shards.at(i)
	}
	return all
}

// The wheel would panic under the shard's lock: the start is refused before.
func TestShard_Full(t *testing.T) {
	defer func(n uint64) { maxPerShard = n }(maxPerShard)
	maxPerShard = 10
	for _, opts := range [][]Option{nil, {WithMaxPending(1000)}} {
		s := New(append([]Option{WithShards(1)}, opts...)...)
		for range 10 {
			_, err := s.Start(time.Hour, func() {})
			require.NoError(t, err)
		}
		for range 3 {
			_, err := s.Start(time.Hour, func() {})
			require.ErrorIs(t, err, ErrTooManyPending)
		}
		require.True(t, s.AfterFunc(time.Hour, func() {}).Stop(), "it fell back")
		if s.limit != nil {
			require.Equal(t, 990, s.limit.free+s.shards.at(0).credit, "no room is lost")
		}
		st := s.Stats()
		require.EqualValues(t, 3, st.Rejected)
		require.EqualValues(t, 1, st.FellBack)
		require.Equal(t, st.Started, st.FellBack+uint64(st.Pending))
		s.Close()
	}
}

// A node whose next moment has passed, by a clock that goes back: it fires at the
// next tick. A panic would leave the shard locked.
func TestShard_RearmOfWhatIsDue(t *testing.T) {
	s := New(WithShards(1), WithTick(time.Millisecond))
	defer s.Close()
	tk := s.NewTicker(1000 * time.Hour)
	sh := tk.sh
	sh.mu.Lock()
	require.True(t, sh.stopLocked(tk.id))
	sh.wheel.Observe(int64(time.Hour))
	tk.id = sh.rearmLocked(int64(time.Minute), int64(2*time.Minute), &tk.node)
	deadline, ok := sh.wheel.Deadline(tk.id)
	sh.n.stopped++ // what it was before it was rearmed
	sh.rearmed = 0
	sh.unlock()
	require.True(t, ok)
	require.Greater(t, deadline, int64(time.Hour))
	require.LessOrEqual(t, deadline, int64(time.Hour+time.Millisecond))
	tk.Stop()
	require.Zero(t, s.Len())
}

// A context that finds no room is never counted as rejected, not even until it has fallen
// back.
func TestShard_ContextThatFindsNoRoomIsNotRejected(t *testing.T) {
	s := New(WithMaxPending(1))
	_, err := s.Start(time.Hour, func() {})
	require.NoError(t, err)
	for _, want := range []error{ErrTooManyPending, ErrClosed} {
		before := s.Stats()
		sh := s.lockShard()
		_, err = sh.startLocked(s.now(), time.Hour, payload{}, tagContext)
		sh.unlock()
		_, err = s.retry(sh, err, s.now(), time.Hour, payload{}, tagContext)
		require.ErrorIs(t, err, want)
		st := s.Stats()
		require.Equal(t, before.Rejected, st.Rejected)
		require.Equal(t, before.RejectedFull, st.RejectedFull)
		require.Equal(t, before.FellBack+1, st.FellBack)
		require.Equal(t, before.Started+1, st.Started)
		s.Close()
	}
}
