package timer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// allShards makes all shards of s and returns them.
func allShards(s *Scheduler) []*shard {
	all := make([]*shard, s.config.numShards)
	for i := range all {
		all[i] = s.shards.shardAt(i)
	}
	return all
}

// A Ticker fires with an old reading of the clock, so its next tick is already due. That
// tick comes at the wheel's next tick.
func TestShard_RearmOfWhatIsDue(t *testing.T) {
	s := New(WithShards(1), WithTick(time.Millisecond))
	defer s.Close()
	tk := s.NewTicker(1000 * time.Hour)
	sh := tk.sh
	sh.mu.Lock()
	require.True(t, sh.stopLocked(tk.id))
	sh.wheel.Observe(int64(time.Hour))
	tk.id = sh.restartTickerLocked(int64(time.Minute), int64(2*time.Minute), tk)
	deadline, ok := sh.wheel.Deadline(tk.id)
	sh.unlock()
	require.True(t, ok)
	require.Greater(t, deadline, int64(time.Hour))
	require.LessOrEqual(t, deadline, int64(time.Hour+time.Millisecond))
	tk.Stop()
	require.Zero(t, s.Len())
}
