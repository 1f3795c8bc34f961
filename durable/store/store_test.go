package store

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimeOf_RoundsUpAndStaysInRange(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	require.Equal(t, Time(at.UnixMicro()), TimeOf(at))
	require.Equal(t, Time(at.UnixMicro()+1), TimeOf(at.Add(1)))
	require.Zero(t, TimeOf(time.Time{}))
	require.Zero(t, TimeOf(time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC)))
	last := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	require.Equal(t, Farthest, TimeOf(last))
	require.Equal(t, Farthest, TimeOf(last.Add(-1)))
	require.Equal(t, Farthest, TimeOf(time.Unix(math.MaxInt64/2, 0)))
	require.Equal(t, Farthest+1, Time(last.UnixMicro()))
}

func TestTime_AddSaturates(t *testing.T) {
	require.Equal(t, Time(3), Time(1).Add(1001*time.Nanosecond))
	require.Equal(t, Farthest, (Farthest - 1).Add(math.MaxInt64))
	require.Equal(t, Time(0), Time(5).Add(math.MinInt64))
	require.Equal(t, 2*time.Microsecond, Time(5).Sub(3))
}

func TestWhen(t *testing.T) {
	require.True(t, When{}.IsZero())
	require.False(t, At(0).IsZero() || After(0).IsZero())
	require.Equal(t, Time(7), At(7).From(3))
	require.Equal(t, Time(10), After(7*time.Microsecond).From(3))
	require.Equal(t, Time(11), After(7001*time.Nanosecond).From(3))
	require.Equal(t, Farthest, After(MaxDelay).From(Farthest-1))
	micros, fromNow := After(time.Millisecond).Parts()
	require.True(t, micros == 1000 && fromNow)
	require.Equal(t, "1970-01-01T00:00:00.000007Z", At(7).String())
}

// The shard of an id must never change: the first version put these ids into these
// shards.
func TestShardOf_NeverChanges(t *testing.T) {
	got := make([]int, 0, 8)
	for _, id := range []string{"", "a", "order-17", "order-18", "\xff", strings.Repeat("x", MaxID)} {
		got = append(got, ShardOf(id, 1024))
		require.Equal(t, ShardOf(id, 1024), ShardOf(DeadID(id), 1024))
		require.Equal(t, ShardOf(id, 1024), ShardOf(SingleID(id, 17), 1024))
		require.Equal(t, ShardOf(id, 1024)&15, ShardOf(id, 16))
	}
	require.Equal(t, []int{368, 689, 482, 571, 251, 368}, got)
}

func TestShardOf_Spreads(t *testing.T) {
	var n [16]int
	for i := range 16_000 {
		n[ShardOf(fmt.Sprint("key-", i), 16)]++
	}
	for _, n := range n {
		require.InDelta(t, 1000, n, 150)
	}
}

func TestID(t *testing.T) {
	require.Equal(t, "k", KeyOf("k"))
	require.Equal(t, "k", KeyOf(DeadID("k")))
	require.Equal(t, "k", KeyOf(SingleID("k", 17)))
	require.False(t, IsSingle("k"))
	require.True(t, IsSingle(DeadID("k")) && IsSingle(SingleID("k", 17)))
}

func TestNote_KeepsTheLatest(t *testing.T) {
	var f []Failure
	for i := range 25 {
		before := len(f)
		longer := Note(f, Failure{Attempt: i, Text: strings.Repeat("ü", i*20)})
		require.Len(t, f, before, "Note changed its argument")
		f = longer
	}
	require.Len(t, f, MaxFailures)
	require.Equal(t, 24, f[MaxFailures-1].Attempt)
	require.Equal(t, 15, f[0].Attempt)
	require.LessOrEqual(t, len(f[9].Text), MaxText)
	require.True(t, strings.HasSuffix(f[9].Text, "ü..."))
}
