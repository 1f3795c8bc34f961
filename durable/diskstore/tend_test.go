package diskstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The interval of WithSync counts from the first acknowledgement that no sync has begun
// after: neither a later one nor the end of the sync before puts the next one off.
func TestWithSync_CountsFromTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{config: config{every: 10 * time.Second}, over: make(chan struct{}), unsynced: make(chan time.Time, 1)}
		y := &syncer{s: s}
		begin := time.Now()
		for _, at := range []time.Duration{0, 3, 9, 12, 24, 27, 36} {
			time.AfterFunc(at*time.Second, func() { // it is written, and acknowledged at once
				if err := y.ask(&turn{groups: []group{{at: 1}}}); err != nil {
					t.Error(err)
				}
			})
		}
		for _, sync := range []struct{ begins, takes time.Duration }{
			{10, 0},  // 10 after 0
			{22, 6},  // 10 after 12
			{34, 16}, // 10 after 24, which came during the sync before
			{50, 0},  // when that before has ended, since 36 is longer ago
		} {
			require.True(t, s.awaitSync())
			require.Equal(t, sync.begins*time.Second, time.Since(begin))
			time.Sleep(sync.takes * time.Second)
		}
		close(s.over)
		require.False(t, s.awaitSync())
	})
}
