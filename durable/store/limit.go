package store

import "math"

// A Limit limits the tasks of one handler, over all workers of a shard. Tasks beyond it
// stay Pending in order, and do not delay other handlers' tasks.
type Limit struct {
	// Concurrency is the maximum number of Running tasks. Zero means any number.
	Concurrency int
	// Rate is the maximum number of claims in a second, on average; a tenth of that
	// number may be claimed at once. Zero means any number. The maximum is a million.
	Rate float64
}

// MaxLimits is how many handlers of a shard may have a limit.
const MaxLimits = 1000

// Pace returns the Rate as integers: the microseconds between two claims, and how many
// tasks may be claimed at once. Both are 0 without a Rate.
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
