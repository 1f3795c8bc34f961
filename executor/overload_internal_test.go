package executor

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// If a submitter that waits has been woken and has not got to run, one that
// comes now sees its room and must leave it: it is woken in its turn.
func TestOverloadBlock_NobodyOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(WithMaxWorkers(1), WithQueue(10))
		release := make(chan struct{})
		p.waiting.Inc() // the one that has been woken
		in := 0
		for range 3 {
			go func() {
				assert.NoError(t, p.Submit(func() { <-release }))
				p.mu.Lock()
				in++
				p.mu.Unlock()
			}()
		}
		synctest.Wait()
		require.Zero(t, in)
		p.mu.Lock()
		p.waiting.Dec()
		p.passRoomLocked() // as it would, and so would each of the three
		p.mu.Unlock()
		synctest.Wait()
		require.Equal(t, 3, in)
		close(release)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}
