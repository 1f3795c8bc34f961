package benchmarks

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogram_BinsFollowOneAnother(t *testing.T) {
	last := time.Duration(-1)
	for i := range bin(math.MaxInt64) + 1 {
		begin, end := last+1, binEnd(i)
		if end < begin || bin(begin) != i || bin(end) != i {
			t.Fatalf("bin %d goes from %d to %d, which fall into %d and %d", i, begin, end, bin(begin), bin(end))
		}
		if width := end - begin; float64(width) > float64(begin)/(1<<fine) {
			t.Fatalf("bin %d from %d is %d wide", i, begin, width)
		}
		last = end
	}
	if last != math.MaxInt64 {
		t.Errorf("the last bin ends at %d", last)
	}
}

func TestHistogram_Quantile(t *testing.T) {
	var h histogram
	var all []time.Duration
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		d := time.Duration(math.Exp(rng.NormFloat64()*2 + 8))
		h.record(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.5, 0.99, 0.9999, 1} {
		want := all[min(int(q*float64(len(all))), len(all)-1)]
		got := h.quantile(q)
		if got < want || float64(got) > float64(want)*1.04+1 {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
	if h.quantile(1) != all[len(all)-1] {
		t.Errorf("the maximum is %v, want %v", h.quantile(1), all[len(all)-1])
	}
}
