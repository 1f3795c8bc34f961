package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Lateness says how long after the caller's own deadline (its clock just
// before Start, plus the delay) callbacks ran.
type Lateness struct {
	P50, P99, P999, Max time.Duration
}

// A LateHistogram collects how late callbacks ran. Its quantiles are exact to
// three digits up to an hour. It is not for several goroutines at once.
type LateHistogram struct {
	h   *hdrhistogram.Histogram
	max time.Duration
}

// NewLateHistogram returns an empty histogram.
func NewLateHistogram() *LateHistogram {
	return &LateHistogram{h: hdrhistogram.New(1, int64(time.Hour), 3)}
}

// Record adds a callback. What came early counts as not late.
func (l *LateHistogram) Record(d time.Duration) {
	l.max = max(l.max, d)
	_ = l.h.RecordValue(int64(min(max(d, 0), time.Hour)))
}

// Lateness returns the quantiles of what was added, zeros if that is nothing.
func (l *LateHistogram) Lateness() Lateness {
	// The histogram rounds up to the end of a bucket.
	at := func(q float64) time.Duration { return min(time.Duration(l.h.ValueAtQuantile(q)), l.max) }
	return Lateness{P50: at(50), P99: at(99), P999: at(99.9), Max: l.max}
}
