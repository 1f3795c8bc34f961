package timingwheel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/bucket"
)

// A few entries and the buckets of three levels share one chunk.
func TestWheel_FewEntriesTakeOneChunk(t *testing.T) {
	w := newWheel[int](t, 1, 256, 0)
	require.Zero(t, w.Chunks())
	n := 0
	for deadline := int64(1); deadline < 1<<24; deadline = deadline*9/8 + 1 {
		_, ok := w.Add(deadline, n)
		require.True(t, ok)
		n++
	}
	require.Equal(t, 3, w.Levels())
	require.Equal(t, 1, w.Chunks())
	require.Less(t, n, bucket.ChunkSize-3*(256+1))

	// An entry that is far away needs the buckets of another level.
	w = newWheel[int](t, 1, 256, 0)
	id, ok := w.Add(1<<60, 1)
	require.True(t, ok)
	require.Equal(t, 8, w.Levels())
	require.Equal(t, 1, w.Chunks())
	for n, l := range w.levels {
		require.Equal(t, n == 7, l.firstBucket != 0)
	}
	checkWheel(t, w)
	w.Each(func(e Entry[int]) { require.Equal(t, 1, e.Value) })
	require.True(t, w.Move(id, 3))
	require.EqualValues(t, []int{1}, advance(w, 3))
	require.Equal(t, 1, w.Chunks())
	checkWheel(t, w)
}

func TestWheelRelease_OnlyWithoutEntries(t *testing.T) {
	w := newWheel[int](t, 1, 256, 0)
	require.True(t, w.Release(), "of a wheel that was never used")
	near, _ := w.Add(10, 1)
	far, _ := w.Add(1000, 2)
	require.False(t, w.Release())
	w.Remove(near)
	w.Remove(far)
	out := make([]Expired[int], 4)
	n, more := w.Advance(500, out)
	require.Zero(t, n)
	require.False(t, more)
	require.True(t, w.Release(), "a bucket is queued, but empty")
	_, queued := w.Next()
	require.False(t, queued)
	w.Advance(2000, out)
	require.Zero(t, w.Chunks())
	require.Zero(t, w.Levels())
	require.EqualValues(t, 2000, w.Clock(), "its time stays")
	_, ok := w.Add(2000, 3)
	require.False(t, ok)
	id, ok := w.Add(2001, 3)
	require.True(t, ok)
	for _, stale := range []ID{near, far} {
		require.False(t, w.Contains(stale))
		require.False(t, w.Move(stale, 5000))
		_, ok = w.Remove(stale)
		require.False(t, ok)
	}
	require.True(t, w.Contains(id))
	n, _ = w.Advance(2001, out)
	require.Equal(t, []Expired[int]{{3, 2001, 2001, 0}}, out[:n])

	// The bucket of this entry expires at the largest time.
	last, ok := w.Add(1<<63-1, 4)
	require.True(t, ok)
	w.Remove(last)
	require.True(t, w.Release())
	_, queued = w.Next()
	require.False(t, queued)
}

// A queue still has buckets from before Release. Expire and Discard must ignore them.
func TestWheelRelease_BucketsThatAreStillInAQueue(t *testing.T) {
	type offered struct {
		b          bucket.Bucket
		expiration int64
	}
	var queue []offered
	w, err := New[int](1, 16, 0, WithQueue(func(b bucket.Bucket, _ uint32, expiration int64) {
		queue = append(queue, offered{b, expiration})
	}))
	require.NoError(t, err)
	for _, deadline := range []int64{10, 100, 1000} {
		id, ok := w.Add(deadline, 1)
		require.True(t, ok)
		w.Remove(id)
	}
	require.True(t, w.Release())
	for _, o := range queue {
		w.Expire(o.b, o.expiration)
		require.False(t, w.Discard(o.b))
	}
	require.Zero(t, w.Clock())
	id, ok := w.Add(500, 2) // perhaps in buckets with the same numbers
	require.True(t, ok)
	for _, o := range queue[:2] {
		w.Expire(o.b, o.expiration)
	}
	require.True(t, w.Contains(id))
	_, more := w.Drain(make([]Expired[int], 4))
	require.False(t, more)
}

// A wheel that calls Release whenever possible hands out the same entries as a wheel that
// does not.
func TestWheelRelease_ChangesNothingElse(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	keeps, releases := newWheel[int](t, 10, 16, 0), newWheel[int](t, 10, 16, 0)
	type entry struct{ keeps, releases ID }
	var all, stale []entry
	out, want := make([]Expired[int], 64), make([]Expired[int], 64)
	now, released := int64(0), 0
	for v := range 20_000 {
		if v%100 < 40 {
			deadline := now + rng.Int64N(1<<rng.IntN(16))
			k, ok := keeps.Add(deadline, v)
			r, also := releases.Add(deadline, v)
			require.Equal(t, ok, also)
			if ok {
				all = append(all, entry{k, r})
			}
		} else {
			if len(all) > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(all))
				a, ok := keeps.Remove(all[i].keeps)
				b, also := releases.Remove(all[i].releases)
				require.Equal(t, ok, also)
				require.Equal(t, a, b)
				stale = append(stale, all[i])
				all = slices.Delete(all, i, i+1)
			}
			now += rng.Int64N(1 << rng.IntN(13))
			for more := true; more; {
				var n, m int
				n, more = keeps.Advance(now, want)
				m, _ = releases.Advance(now, out)
				require.Equal(t, want[:n], out[:m])
			}
		}
		if releases.Release() {
			released++
			require.Zero(t, keeps.Len())
		}
		if v%500 == 0 {
			for _, e := range stale {
				require.False(t, releases.Contains(e.releases))
			}
		}
	}
	require.Greater(t, released, 50)
	require.Equal(t, keeps.Cascaded(), releases.Cascaded())
}
