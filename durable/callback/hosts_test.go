package callback

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newHosts(limit int) *hostLimiter {
	return &hostLimiter{maxLimit: limit, hostByName: make(map[string]*host)}
}

// try calls beginRequest with a context that has already ended, so that it does not wait.
func (s *hostLimiter) try(name string, places int) (*host, time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h, after, _ := s.beginRequest(ctx, name, places)
	return h, after
}

func TestHosts_RoomGrowsWithAnswersAndShrinksWithout(t *testing.T) {
	s := newHosts(16)
	call := func(answered bool) {
		h, _ := s.try("a", 0)
		require.NotNil(t, h)
		s.endRequest("a", h, time.Millisecond, answered)
	}
	for _, room := range []int{2, 1, 1} {
		call(false)
		require.Equal(t, room, s.hostByName["a"].limit)
	}
	for _, room := range []int{2, 3} {
		call(true)
		require.Equal(t, room, s.hostByName["a"].limit)
	}
	call(true)
	require.Empty(t, s.hostByName, "a host is deleted when it answers and is idle")

	h, _ := s.try("a", 0)
	for range 30 {
		call(true)
	}
	require.Equal(t, 16, h.limit)
}

func TestHosts_TakeHalfOfTheWorkersPlacesAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHosts(16)
		ctx, cancel := context.WithCancel(context.Background())
		results := make(chan bool, 100)
		for range 100 {
			go func() {
				_, _, ok := s.beginRequest(ctx, "a", 6)
				results <- ok
			}()
		}
		synctest.Wait()
		s.mu.Lock()
		held := s.hostByName["a"].running + len(s.hostByName["a"].waiting)
		s.mu.Unlock()
		require.Equal(t, 3, held)
		h, _ := s.try("b", 6)
		require.NotNil(t, h, "another host has its own limit")
		cancel()
		back := 0
		for range 100 {
			if !<-results {
				back++
			}
		}
		require.Equal(t, 97, back)
	})
}

// A waiting task begins its request when another request to its host ends.
func TestHosts_WaitingOnesFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHosts(1)
		h, _ := s.try("a", 0)
		entered := make(chan *host)
		go func() {
			next, _, _ := s.beginRequest(context.Background(), "a", 0)
			entered <- next
		}()
		synctest.Wait()
		_, after := s.try("a", 0)
		require.Positive(t, after, "one task waits already")
		s.endRequest("a", h, time.Second, true)
		require.Equal(t, h, <-entered)
		s.endRequest("a", h, time.Second, true)
	})
}

// Each task that is handed back to the store gets a longer delay than the task before, at
// most maxDelay. The slower the host answers, the longer the delays.
func TestHosts_HandBackForTheTimeOfTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHosts(1)
		s.sweepSize = 1
		h, _ := s.try("a", 0)
		h.avgDuration = 10 * time.Millisecond
		go func() { _, _, _ = s.beginRequest(context.Background(), "a", 0) }()
		synctest.Wait()
		for i := range 100 {
			_, after := s.try("a", 0)
			require.Equal(t, minDelay+time.Duration(i+1)*10*time.Millisecond, after)
		}
		h.avgDuration = time.Minute
		for range 100 {
			_, after := s.try("a", 0)
			require.GreaterOrEqual(t, after, maxDelay/2)
			require.LessOrEqual(t, after, maxDelay)
		}
		s.endRequest("a", h, time.Minute, false)
		s.endRequest("a", h, time.Minute, false)
		require.Len(t, s.hostByName, 1, "a host that did not answer is remembered")
		time.Sleep(2 * forgetAfter)
		_, _ = s.try("b", 0)
		require.NotContains(t, s.hostByName, "a", "the host is forgotten in the end")
	})
}
