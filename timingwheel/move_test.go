package timingwheel

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/bucket"
)

func TestWheelMove(t *testing.T) {
	// At time 16, with tick 1 and 4 slots, the entry at 42 is on level 2, in the bucket
	// of slot 32.
	for _, c := range []struct {
		name       string
		to         int64
		ok         bool
		relinked   bool
		level      int
		expiration int64
	}{
		{"much later", 1000, true, false, 2, 32},
		{"for ever", math.MaxInt64, true, false, 2, 32},
		{"a little later", 43, true, false, 2, 32},
		{"to the same", 42, true, false, 2, 32},
		{"before the bucket expires, in its slot", 41, true, true, 2, 32},
		{"to the beginning of its slot", 32, true, true, 2, 32},
		{"before that", 31, true, true, 1, 28},
		{"much earlier", 17, true, true, 0, 17},
		{"to now", 16, false, false, 2, 32},
		{"to the past", 3, false, false, 2, 32},
		{"before all time", math.MinInt64, false, false, 2, 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			offers := 0
			w := newWheel[int](t, 1, 4, 16)
			w.offerBucket = func(bucket.Bucket, uint32, int64) { offers++ }
			id := add(t, w, 42, 1)
			level, expiration := where(t, w, id)
			require.Equal(t, 2, level)
			require.EqualValues(t, 32, expiration)

			require.Equal(t, c.ok, w.Move(id, c.to))
			level, expiration = where(t, w, id)
			require.Equal(t, c.level, level)
			require.Equal(t, c.expiration, expiration)
			require.Equal(t, c.relinked, offers == 2)
			checkWheel(t, w)

			due := int64(42)
			if c.ok {
				due = c.to
			}
			d, _ := w.Deadline(id)
			require.Equal(t, due, d)
			require.True(t, w.Contains(id), "a refused move changes nothing")
			require.Empty(t, advance(w, due-1))
			checkWheel(t, w)
			require.Equal(t, []int{1}, advance(w, due))
			require.False(t, w.Move(id, math.MaxInt64), "it was handed out")
			require.Zero(t, w.Len())
		})
	}
}

func TestWheelMove_Stale(t *testing.T) {
	w := newWheel[int](t, 1, 4, 0)
	gone := add(t, w, 10, 1)
	w.Remove(gone)
	id := add(t, w, 20, 2) // the same slot
	for _, to := range []int64{0, 5, 100} {
		require.False(t, w.Move(gone, to))
	}
	d, ok := w.Deadline(id)
	require.True(t, ok)
	require.EqualValues(t, 20, d)
	_, ok = w.Remove(gone)
	require.False(t, ok)
	require.Equal(t, []int{2}, advance(w, 20))
}

// An idle timeout is moved later with every request. Each move touches only its entry.
// The bucket wakes the poller only once.
func TestWheelMove_LaterAgainAndAgain(t *testing.T) {
	offers := 0
	w := newWheel[int](t, 1, 256, 0, WithQueue(func(bucket.Bucket, uint32, int64) { offers++ }))
	id := add(t, w, 100, 1)
	for d := int64(101); d < 100_000; d++ {
		require.True(t, w.Move(id, d))
	}
	require.Equal(t, 1, offers)
	require.Equal(t, 1, w.Levels())
}

// A new deadline equal to the bucket's expiration leaves the entry in the bucket.
func TestWheelMove_ToTheBucketsExpiration(t *testing.T) {
	w := newWheel[int](t, 1, 4, 16)
	add(t, w, 41, 0)
	id := add(t, w, 42, 1)
	w.Observe(40) // at this time 41 belongs to level 0
	require.True(t, w.Move(id, 41))
	level, begin := where(t, w, id)
	require.Equal(t, 2, level)
	require.EqualValues(t, 32, begin)
	require.Equal(t, []int{0, 1}, advance(w, 41))
	require.Zero(t, w.Cascaded(), "it came straight out")
}

// Deadlines that round up to the same tick count as the same deadline.
func TestWheelMove_WithinATick(t *testing.T) {
	w := newWheel[int](t, 100, 8, 0)
	id := add(t, w, 150, 1)
	for _, to := range []int64{101, 200, 199, 150} {
		require.True(t, w.Move(id, to))
		level, expiration := where(t, w, id)
		require.Equal(t, 0, level)
		require.EqualValues(t, 200, expiration)
	}
	require.True(t, w.Move(id, 100))
	_, expiration := where(t, w, id)
	require.EqualValues(t, 100, expiration)
	require.False(t, w.Move(id, 0))
	require.True(t, w.Move(id, 1))
	require.Equal(t, []int{1}, advance(w, 100))
}

// An entry in the list being drained is moved, between two batches of the drain.
func TestWheelMove_DuringADrain(t *testing.T) {
	for _, queue := range []bool{false, true} {
		for _, c := range []struct {
			to int64
			ok bool
		}{
			{math.MaxInt64, true},
			{1000, true},
			{17 + 64, true},
			{21, true},
			{18, true},
			{17, false}, // due: handed out by this drain
			{1, false},
		} {
			t.Run(fmt.Sprintf("queue=%v/to=%d", queue, c.to), func(t *testing.T) {
				var q queueModel
				var opts []Option
				if queue {
					opts = append(opts, WithQueue(q.offer))
				}
				w := newWheel[int](t, 1, 4, 0, opts...)
				q.now = 17
				add(t, w, 17, 1)
				id := add(t, w, 17, 2)
				add(t, w, 17, 3)
				var out [1]Expired[int]
				var n int
				var more bool
				drain := func() {
					n, more = 0, true
					for more && n == 0 {
						if !queue {
							n, more = w.Advance(17, out[:])
						} else if n, more = w.Drain(out[:]); !more && n == 0 {
							if b, ok := q.pop(); ok {
								w.Expire(b.b, b.expiration)
								more = true
							}
						}
					}
				}
				drain()
				require.Equal(t, 1, n)
				require.Equal(t, 1, out[0].Value)
				require.EqualValues(t, 17, w.Clock())

				require.Equal(t, c.ok, w.Move(id, c.to))
				checkWheel(t, w)
				var got []int
				for drain(); n > 0; drain() {
					got = append(got, out[0].Value)
				}
				checkWheel(t, w)
				if !c.ok {
					require.Equal(t, []int{2, 3}, got)
					return
				}
				require.Equal(t, []int{3}, got)
				require.Equal(t, 1, w.Len())
				require.True(t, w.Contains(id))
				d, _ := w.Deadline(id)
				require.Equal(t, c.to, d)
				if !queue {
					require.Empty(t, advance(w, c.to-1))
					require.Equal(t, []int{2}, advance(w, c.to))
				}
			})
		}
	}
}

// An entry in a due list still has the place of its old bucket. Even if that bucket is
// queued again, the entry is handed out in time.
func TestWheelMove_DuringADrain_BucketQueuedAgain(t *testing.T) {
	for to := int64(4); to < 40; to++ {
		q := queueModel{now: 3}
		w := newWheel[int](t, 1, 4, 0, WithQueue(q.offer))
		add(t, w, 2, 20)
		moved := add(t, w, 2, 21)
		add(t, w, 3, 30)
		b2, _ := q.pop()
		w.Expire(b2.b, b2.expiration)
		b3, _ := q.pop()
		w.Expire(b3.b, b3.expiration) // the clock is at 3; three entries wait to be drained
		again := add(t, w, 6, 60)
		level, expiration := where(t, w, again)
		require.Equal(t, 0, level)
		require.EqualValues(t, 6, expiration)
		require.Equal(t, b2.b, w.bucketOf(mustFind(t, w, again)), "the bucket that had expired at 2")
		require.Equal(t, b2.b, w.bucketOf(mustFind(t, w, moved)))

		require.True(t, w.Move(moved, to))
		checkWheel(t, w)
		var got []int
		for now := int64(3); w.Len() > 0; now++ {
			q.now = now
			for _, e := range q.poll(w, 1) {
				require.LessOrEqual(t, e.Deadline, now)
				if e.Value == 21 {
					require.Equal(t, to, now)
				}
				got = append(got, e.Value)
			}
			checkWheel(t, w)
		}
		require.Len(t, got, 4)
	}
}
