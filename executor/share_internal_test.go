package executor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Whose callback blocks is not looked at over and over, wherever in the Share it is, and
// the room for very many of them does not stay.
func TestShares_ThoseThatBlockAreForgotten(t *testing.T) {
	const many = 10_000
	synctest.Test(t, func(t *testing.T) {
		p := NewPool()
		release := make(chan struct{})
		for i := range many {
			fs := []func(){func() {}, func() {}, func() {}}
			fs[i%len(fs)] = func() { <-release }
			s, _, err := p.Share(fs)
			require.NoError(t, err)
			go s.Run()
		}
		time.Sleep(time.Second)
		p.mu.Lock()
		require.Empty(t, p.shares.all)
		require.LessOrEqual(t, cap(p.shares.all), minShares)
		p.mu.Unlock()
		require.Equal(t, many, p.Stats().Running)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 3*many, p.Stats().Run)
		require.LessOrEqual(t, len(p.shares.spare), maxSpareShares)
	})
}
