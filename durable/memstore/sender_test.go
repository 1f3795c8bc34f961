package memstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timertest"
)

// A worker that was silent for more than a day no longer counts as able to run tasks.
func TestStats_AWorkerThatIsGone(t *testing.T) {
	unknown, _ := unknownAfterADay(t, false)
	require.EqualValues(t, 3, unknown)
}

// While the store is paused, a silent worker still counts, because it has nothing to
// claim. After the pause, a worker that was silent for a day is gone.
func TestStats_AWorkerOfAPausedStore(t *testing.T) {
	unknown, resumed := unknownAfterADay(t, true)
	require.Zero(t, unknown)
	require.EqualValues(t, 4, resumed)
}

// unknownAfterADay returns how many tasks have no worker after the only worker was silent
// for more than a day. If pause is true, the store is paused during that day, and resumed
// is how many tasks have no worker after the pause.
func unknownAfterADay(t *testing.T, pause bool) (unknown, resumed int64) {
	clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s := memstore.New(memstore.WithClock(clk), memstore.WithShards(1))
	schedule := func(sender, id string) {
		c := store.Command{Op: store.Schedule, Items: []store.Item{{ID: id, When: store.After(0), Task: store.Task{ID: id, Handler: "h"}}}}
		_, err := s.Change(t.Context(), 0, store.Stamp{Sender: sender, Number: 1}, c)
		require.NoError(t, err)
	}
	count := func() int64 {
		st, err := s.Stats(t.Context(), 0)
		require.NoError(t, err)
		return st.Unknown
	}
	schedule("client", "a")
	require.EqualValues(t, 1, count())
	_, err := s.Do(t.Context(), 0, store.Stamp{Sender: "worker", Number: 1}, store.Round{Lease: time.Second, MaxCrashes: 3, Claim: store.Claim{Asked: true, Handlers: []string{"h"}}})
	require.NoError(t, err)
	require.Zero(t, count())
	change := func(number int64, op store.Op) {
		_, err := s.Change(t.Context(), 0, store.Stamp{Sender: "operator", Number: number}, store.Command{Op: op})
		require.NoError(t, err)
	}
	if pause {
		change(1, store.Pause)
	}
	clk.Advance(23 * time.Hour)
	schedule("another", "b") // a new sender makes the store check other senders
	require.Zero(t, count())
	clk.Advance(2 * time.Hour)
	schedule("a third", "c")
	unknown = count()
	change(2, store.Resume)
	schedule("a fourth", "d")
	return unknown, count()
}
