package metric

import (
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// buckets returns the buckets of a timer.Histogram of the durations: eight buckets
// between two powers of two.
func buckets(durations ...time.Duration) iter.Seq2[time.Duration, uint64] {
	counts := make(map[time.Duration]uint64)
	for _, d := range durations {
		limit := d
		if d >= 16 {
			width := time.Duration(1)
			for d/width >= 16 {
				width *= 2
			}
			limit = d/width*width + width - 1
		}
		counts[limit]++
	}
	return func(yield func(time.Duration, uint64) bool) {
		for _, limit := range slices.Sorted(maps.Keys(counts)) {
			if !yield(limit, counts[limit]) {
				return
			}
		}
	}
}

// A duration is in the bucket that it belongs to, or in the next if it is at most 12.5
// percent below the bound between them.
func TestCounts_NeverUnderstate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	durations := []time.Duration{0, 1, time.Millisecond, time.Minute, time.Minute + 1, math.MaxInt64}
	for range 10_000 {
		durations = append(durations, time.Duration(r.Int64N(1<<(1+r.IntN(62)))))
	}
	bucketOf := func(seconds float64) int {
		i := 0
		for i < len(Bounds) && seconds > Bounds[i] {
			i++
		}
		return i
	}
	for _, d := range durations {
		counts := Counts(buckets(d))
		if got := slices.Index(counts, 1); got < bucketOf(d.Seconds()) || got > bucketOf(1.125*d.Seconds()) {
			t.Errorf("%v is counted in bucket %d of %v", d, got, Bounds)
		}
	}
	if total := Counts(buckets(durations...)); func() (n uint64) {
		for _, c := range total {
			n += c
		}
		return n
	}() != uint64(len(durations)) {
		t.Errorf("%v: want %d in all", total, len(durations))
	}
}

func TestExponentials_NeverUnderstate(t *testing.T) {
	base := math.Pow(2, 1./(1<<Scale))
	check := func(d time.Duration) {
		t.Helper()
		e := Exponentials(buckets(d))
		if d <= 1 {
			if e.Zero != 1 || len(e.Counts) != 0 {
				t.Errorf("%v: got %+v, want one in Zero", d, e)
			}
			return
		}
		if e.Zero != 0 || !slices.Equal(e.Counts, []uint64{1}) {
			t.Fatalf("%v: got %+v, want one bucket of one", d, e)
		}
		limit := math.Pow(base, float64(e.Offset+1))
		if s := d.Seconds(); limit < s*(1-1e-9) || limit > s*1.23 {
			t.Errorf("%v is in the bucket up to %g s", d, limit)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for d := range time.Duration(1000) {
		check(d)
	}
	for range 10_000 {
		check(time.Duration(r.Int64N(1 << (1 + r.IntN(62)))))
	}
}

func TestExponentials_KeepTheirPlaces(t *testing.T) {
	durations := []time.Duration{time.Microsecond, time.Millisecond, time.Second, time.Second}
	e := Exponentials(buckets(durations...))
	places := make(map[int]uint64)
	for i, n := range e.Counts {
		if n > 0 {
			places[e.Offset+i] = n
		}
	}
	for _, d := range durations {
		alone := Exponentials(buckets(d))
		places[alone.Offset]--
	}
	for i, n := range places {
		if n != 0 {
			t.Errorf("the bucket %d has %d more than it should", i, int64(n))
		}
	}
}
