package timingwheel

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// These tests follow Kafka's tests of its timer and its timing wheel. They differ in two
// ways. Deadlines round up to a tick, not down. A level has 4 slots where Kafka uses 3 or
// 5.

// Delays that have passed are due immediately.
func TestKafka_AlreadyExpired(t *testing.T) {
	w := newWheel[int](t, 1, 4, 100)
	for delay := int64(-5); delay <= 0; delay++ {
		id, ok := w.Add(100+delay, 0)
		require.False(t, ok)
		require.Equal(t, ID{}, id)
	}
	require.Zero(t, w.Len())
	_, ok := w.Next()
	require.False(t, ok)
}

// Some of the delays occur twice. All 585 callbacks come in the order of deadlines.
func TestKafka_Expiration(t *testing.T) {
	w := newWheel[int64](t, 1, 4, 0)
	var got, want []int64
	task := func(delay int64) {
		if _, ok := w.Add(delay, delay); !ok {
			got = append(got, delay) // only the delay of 0 is due immediately
		}
	}
	for d := int64(0); d < 5; d++ {
		task(d)
		want = append(want, d)
	}
	require.Equal(t, []int64{0}, got)
	for d := int64(10); d < 100; d++ {
		task(d)
		task(d)
		want = append(want, d, d)
	}
	for d := int64(100); d < 500; d++ {
		task(d)
		want = append(want, d)
	}
	for next, ok := w.Next(); ok; next, ok = w.Next() {
		got = append(got, advance(w, next)...)
	}
	require.Len(t, got, 585)
	require.Equal(t, want, got)
}

// The wheel has a tick of 10 and starts at 1000. Kafka's has 5 slots.
func TestKafka_AddAndAdvance(t *testing.T) {
	w := newWheel[int](t, 10, 4, 1000)
	require.EqualValues(t, 1000, w.Clock())

	id := add(t, w, 1020, 1020)
	level, expiration := where(t, w, id)
	require.Equal(t, 0, level)
	require.EqualValues(t, 1020, expiration)

	for _, late := range []int64{-5, 0, 999, 1000} {
		_, ok := w.Add(late, 0)
		require.False(t, ok, "%d is due already", late)
	}
	// Kafka rounds 1005 down to the clock, so it is due immediately. Here it is due at
	// 1010.
	id = add(t, w, 1005, 1005)
	_, expiration = where(t, w, id)
	require.EqualValues(t, 1010, expiration)
	require.Equal(t, 2, w.Len())

	// 1005 is within the current tick, so the clock does not move.
	require.Empty(t, advance(w, 1005))
	require.EqualValues(t, 1000, w.Clock())
	require.Equal(t, []int{1005}, advance(w, 1010))
	require.EqualValues(t, 1010, w.Clock())
	_, ok := w.Add(1010, 0)
	require.False(t, ok)

	require.Equal(t, []int{1020}, advance(w, 1020))
	require.Equal(t, 1, w.Levels())
}

// The first deadline beyond the lowest level makes the next level, Kafka's overflow
// wheel. Later deadlines do not make it again.
func TestKafka_OverflowWheelIsMadeOnce(t *testing.T) {
	w := newWheel[int](t, 10, 4, 1000)
	require.Empty(t, advance(w, 1010))
	add(t, w, 1040, 1040)
	require.Equal(t, 1, w.Levels())

	id := add(t, w, 1050, 1050)
	require.Equal(t, 2, w.Levels())
	level, expiration := where(t, w, id)
	require.Equal(t, 1, level)
	require.EqualValues(t, 1040, expiration, "level 1 has slots of 40")

	made := w.levels[1].firstBucket
	id = add(t, w, 1051, 1051) // rounds to 1060
	require.Equal(t, 2, w.Levels())
	level, expiration = where(t, w, id)
	require.Equal(t, 1, level)
	require.EqualValues(t, 1040, expiration, "the same bucket")
	require.Equal(t, made, w.levels[1].firstBucket)

	// At 1060 the overflow wheel's clock reads 1040, because its slots begin at multiples
	// of 40. (Kafka's reads 1050, with slots of 50.)
	require.Equal(t, []int{1040, 1050, 1051}, advance(w, 1060))
	require.EqualValues(t, 1060, w.Clock())
	for _, c := range []struct {
		deadline int64
		level    int
	}{
		{1090, 0},             // 3 slots later
		{1100, 1},             // 4 slots later
		{1040 + 4*40 - 10, 1}, // the last slot of level 1, whose clock reads 1040
		{1040 + 4*40, 2},
	} {
		level, _ := where(t, w, add(t, w, c.deadline, 0))
		require.Equal(t, c.level, level, "deadline %d", c.deadline)
	}
}
