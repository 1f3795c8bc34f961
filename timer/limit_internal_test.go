package timer

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
)

// Once it is known that there is no room, a start that is refused looks at no other
// shard: here it would wait for one.
func TestLimit_RefusedWithoutALookAtTheShards(t *testing.T) {
	s := New(WithShards(3), WithMaxPending(100))
	defer s.Close()
	start := func() error {
		_, err := s.Start(time.Hour, func() {})
		return err
	}
	for range 100 {
		require.NoError(t, start())
	}
	require.ErrorIs(t, start(), ErrTooManyPending)
	s.shards.at(1).mu.Lock()
	for range 1000 {
		require.ErrorIs(t, start(), ErrTooManyPending)
	}
	s.shards.at(1).mu.Unlock()
	require.EqualValues(t, 1001, s.Stats().Rejected)
}

// All credits can be spent, whatever shard gave them back, and no more than these.
func TestLimit_EveryCreditIsFound(t *testing.T) {
	for _, n := range []int{1, 3, 10, 100, 1000, 10_000} {
		for _, shards := range []int{1, 2, 7, 64} {
			s := New(WithShards(shards), WithMaxPending(n))
			now := s.now()
			startOn := func(i int) (Handle, error) {
				sh := s.shards.at(i % shards)
				sh.mu.Lock()
				id, err := sh.startLocked(now, time.Hour, funcPayload(func() {}), tagFunc)
				sh.unlock()
				if err != nil {
					id, err = s.retry(sh, err, now, time.Hour, funcPayload(func() {}), tagFunc)
				}
				if err != nil {
					return Handle{}, err
				}
				return sh.handle(id), nil
			}
			var hs []Handle
			for round := range 10 {
				for len(hs) < n {
					h, err := startOn(len(hs) * (round + 1))
					require.NoError(t, err, "%d of %d", len(hs), n)
					hs = append(hs, h)
				}
				for i := range min(shards, 10) {
					_, err := startOn(i)
					require.ErrorIs(t, err, ErrTooManyPending)
				}
				for _, h := range hs[n*round/10:] {
					require.True(t, h.Stop())
				}
				hs = hs[:n*round/10]
			}
			s.Close()
		}
	}
}

// The same from several goroutines: never more than the limit are pending, and when
// all is quiet every credit is there.
func TestLimit_Stress(t *testing.T) {
	const n, shards = 256, 16
	s := New(WithShards(shards), WithMaxPending(n))
	defer s.Close()
	held := atomic.NewInt64(0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var hs []Handle
			for i := range 50_000 {
				if h, err := s.Start(time.Hour, func() {}); err == nil {
					require.LessOrEqual(t, held.Inc(), int64(n))
					hs = append(hs, h)
				}
				if len(hs) > 0 && (i%3 == 0 || i%5000 > 4000) {
					last := len(hs) - 1
					held.Dec() // before the Stop, which makes the room
					require.True(t, hs[last].Stop())
					hs = hs[:last]
				}
			}
			for _, h := range hs {
				held.Dec()
				require.True(t, h.Stop())
			}
		})
	}
	wg.Wait()
	for range n {
		_, err := s.Start(time.Hour, func() {})
		require.NoError(t, err)
	}
	_, err := s.Start(time.Hour, func() {})
	require.ErrorIs(t, err, ErrTooManyPending)
}

// A start that is refused, with shards enough that a look at each would show.
func BenchmarkStart_Refused(b *testing.B) {
	s := New(WithShards(1024), WithMaxPending(100_000))
	defer s.Close()
	f := func() {}
	for {
		if _, err := s.Start(time.Hour, f); err != nil {
			break
		}
	}
	for b.Loop() {
		if _, err := s.Start(time.Hour, f); err != ErrTooManyPending {
			b.Fatal(err)
		}
	}
}
