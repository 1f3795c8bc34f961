package redisstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Close waits for what the Store does on its own, but not for more than a second.
func TestClose_WaitsForASecondAtMost(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{
		0:                      0,
		300 * time.Millisecond: 300 * time.Millisecond,
		time.Hour:              time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Store{closed: make(chan struct{})}
			s.looking.Go(func() { time.Sleep(takes) })
			began := time.Now()
			require.NoError(t, s.Close())
			require.Equal(t, want, time.Since(began))
			s.looking.Wait()
		})
	}
}
