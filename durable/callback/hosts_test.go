package callback

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newHosts(limit int) *hosts { return &hosts{limit: limit, m: make(map[string]*host)} }

// try is enter with a context that has already ended, so that it does not wait.
func (s *hosts) try(name string, places int) (*host, time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h, after, _ := s.enter(ctx, name, places)
	return h, after
}

func TestHosts_RoomGrowsWithAnswersAndShrinksWithout(t *testing.T) {
	s := newHosts(16)
	call := func(answered bool) {
		h, _ := s.try("a", 0)
		require.NotNil(t, h)
		s.leave("a", h, time.Millisecond, answered)
	}
	for _, room := range []int{2, 1, 1} {
		call(false)
		require.Equal(t, room, s.m["a"].room)
	}
	for _, room := range []int{2, 3} {
		call(true)
		require.Equal(t, room, s.m["a"].room)
	}
	call(true)
	require.Empty(t, s.m, "it is well again, and idle")

	h, _ := s.try("a", 0)
	for range 30 {
		call(true)
	}
	require.Equal(t, 16, h.room)
}

func TestHosts_TakeHalfOfTheWorkersPlacesAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHosts(16)
		ctx, cancel := context.WithCancel(context.Background())
		results := make(chan bool, 100)
		for range 100 {
			go func() {
				_, _, ok := s.enter(ctx, "a", 6)
				results <- ok
			}()
		}
		synctest.Wait()
		s.mu.Lock()
		held := s.m["a"].running + len(s.m["a"].waiting)
		s.mu.Unlock()
		require.Equal(t, 3, held)
		h, _ := s.try("b", 6)
		require.NotNil(t, h, "another host has its own")
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

// Waiting tasks enter in order when the host has room.
func TestHosts_WaitingOnesFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHosts(1)
		h, _ := s.try("a", 0)
		entered := make(chan *host)
		go func() {
			next, _, _ := s.enter(context.Background(), "a", 0)
			entered <- next
		}()
		synctest.Wait()
		_, after := s.try("a", 0)
		require.Positive(t, after, "one waits already")
		s.leave("a", h, time.Second, true)
		require.Equal(t, h, <-entered)
		s.leave("a", h, time.Second, true)
	})
}

// Tasks that are handed back get delays one after the other, at the host's own pace,
// and never a delay above the limit.
func TestHosts_HandBackForTheTimeOfTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHosts(1)
		s.sweep = 1
		h, _ := s.try("a", 0)
		h.took = 10 * time.Millisecond
		go func() { _, _, _ = s.enter(context.Background(), "a", 0) }()
		synctest.Wait()
		for i := range 100 {
			_, after := s.try("a", 0)
			require.Equal(t, soonest+time.Duration(i+1)*10*time.Millisecond, after)
		}
		h.took = time.Minute
		for range 100 {
			_, after := s.try("a", 0)
			require.GreaterOrEqual(t, after, latest/2)
			require.LessOrEqual(t, after, latest)
		}
		s.leave("a", h, time.Minute, false)
		s.leave("a", h, time.Minute, false)
		require.Len(t, s.m, 1, "it did not answer")
		time.Sleep(2 * memory)
		_, _ = s.try("b", 0)
		require.NotContains(t, s.m, "a", "it is forgotten in the end")
	})
}
