package diskstore

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
)

// What a store takes when it imports can be read again.
func FuzzEntry(f *testing.F) {
	for _, n := range []int64{0, 1 << 30, 1<<30 + 1, math.MaxInt32, math.MaxInt32 + 1, -1} {
		f.Add(n, int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), "text", []byte("record"), true)
		f.Add(int64(0), n, int64(0), int64(0), int64(0), int64(0), int64(0), "", []byte{}, true)
		f.Add(int64(0), int64(0), n, int64(0), int64(0), int64(0), int64(0), "", []byte{}, false)
		f.Add(int64(0), int64(0), int64(0), n, int64(0), int64(0), int64(0), "", []byte{}, false)
	}
	for _, at := range []int64{-1, int64(store.Farthest), int64(store.Farthest) + 1} {
		f.Add(int64(0), int64(0), int64(0), int64(0), at, int64(0), int64(0), "", []byte{}, false)
		f.Add(int64(0), int64(0), int64(0), int64(0), int64(0), at, int64(0), "", []byte{}, false)
		f.Add(int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), at, "", []byte{}, false)
	}
	f.Fuzz(func(t *testing.T, attempts, crashes, runs, attempt, at, due, failed int64, text string, record []byte, dead bool) {
		e := store.Entry{State: store.Pending, At: store.Time(at), Due: store.Time(due),
			Attempts: int(attempts), Crashes: int(crashes), Runs: int(runs),
			Failures: []store.Failure{{Attempt: int(attempt), Time: store.Time(failed), Text: text}}}
		e.ID, e.Handler = "k", "h"
		if dead {
			e.State = store.Dead
		}
		if len(record) > 0 {
			e.Record = record
		}
		c := store.Command{Op: store.Import, Items: []store.Item{{ID: "k", Entry: &e}}}
		if err := c.Check(&store.Stamp{Sender: "s", Number: 1}); err != nil {
			require.ErrorIs(t, err, store.ErrInvalid)
			return
		}
		var got store.Entry
		got.ID, got.Handler = "k", "h" // which the key and the kind have
		kind, err := readEntry(nil, appendEntry(nil, &e, 3), &got)
		require.NoError(t, err)
		require.EqualValues(t, 3, kind)
		require.Equal(t, e, got)
	})
}
