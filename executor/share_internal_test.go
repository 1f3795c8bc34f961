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
		synctest.Wait()
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

// Not even those whose last callback blocks, while the watchdog has no time to come, or
// finds that others wait.
func TestShares_ThoseThatBlockInTheEndAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithWorkers(1))
		release := make(chan struct{})
		run := func(last func()) {
			s, _, err := p.Share([]func(){func() {}, last})
			require.NoError(t, err)
			go s.Run()
			synctest.Wait()
		}
		forgotten := func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.shares.all) == 0
		}
		run(func() { <-release })
		require.False(t, forgotten())
		run(func() {}) // the watchdog was armed for it, and rests
		require.True(t, forgotten())

		run(func() { <-release })
		n := submitUnbegun(p, []func(){func() {}})
		time.Sleep(2 * watchEvery)
		synctest.Wait()
		require.Equal(t, 1, p.queue.len())
		require.True(t, forgotten())
		p.spawn(n)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 7, p.Stats().Run)
	})
}
