package store

import "math"

// A Limit is for the tasks of one handler, in all workers of a shard together. Tasks over it
// stay Pending in their order, and keep no claim from other handlers' tasks.
type Limit struct {
	// Concurrency is how many may be Running; 0: any number.
	Concurrency int
	// Rate is how many may be claimed in a second, on average, and a tenth of that many at
	// once; 0: any number. More than a million are a million.
	Rate float64
}

// MaxLimits is how many handlers of a shard may have a limit.
const MaxLimits = 1000

// Pace returns the Rate in whole numbers: one task may be claimed in every so many
// microseconds, and burst at once. Both are 0 without a Rate.
func (l *Limit) Pace() (every Time, burst int64) {
	if l.Rate == 0 {
		return 0, 0
	}
	rate := min(l.Rate, 1e6)
	return Time(min(math.Ceil(1e6/rate), float64(MaxDelay.Microseconds()))), max(1, int64(rate/10))
}

func (x *Item) checkLimit() error {
	if len(x.ID) < 1 || len(x.ID) > MaxID || x.Limit == nil {
		return invalid("a limit without numbers, or with a handler's name of %d bytes, not from 1 to %d", len(x.ID), MaxID)
	}
	if l := x.Limit; l.Concurrency < 0 || l.Concurrency > maxTried || !(l.Rate >= 0) || math.IsInf(l.Rate, 1) {
		return invalid("handler %q: a limit of %+v", x.ID, *l)
	}
	return nil
}
