package store

import "math"

// A Limit limits the tasks of one handler, over all workers of a shard. Tasks beyond
// the Limit stay Pending, and do not delay tasks of other handlers or groups.
type Limit struct {
	// Concurrency is the maximum number of Running tasks. Zero means any number.
	Concurrency int
	// Rate is the average number of tasks that may be claimed in a second, from MinRate to
	// MaxRate. A handler that was idle may claim the tasks of a tenth of a second, but at
	// least one, at one time. Zero means no limit.
	Rate float64
	// GroupConcurrency and GroupRate limit the tasks of each group of the handler in the
	// same way: the tasks with the same [Task.Group]. They do not limit tasks without a
	// group.
	GroupConcurrency int     `json:",omitempty"`
	GroupRate        float64 `json:",omitempty"`
}

// OfGroup returns the limit of each group, as the Concurrency and the Rate of a Limit.
func (l *Limit) OfGroup() Limit { return Limit{Concurrency: l.GroupConcurrency, Rate: l.GroupRate} }

// The range of a Rate: from one task in 11.6 days to a million in a second.
const (
	MinRate = 1e-6
	MaxRate = 1e6
)

// MaxLimits is how many handlers of a shard may have a limit, or be paused.
const MaxLimits = 1000

// A HandlerPause says since when a handler is paused, and why.
type HandlerPause struct {
	Since Time
	Note  string
}

func (x *Item) checkPause(op Op) error {
	if !IsName(x.ID) && (op == PauseHandler || x.ID == "") {
		return invalidf("the handler's name %q does not have "+nameRule, x.ID)
	}
	if len(x.Note) > MaxText || !isText(x.Note) || op == ResumeHandler && x.Note != "" {
		return invalidf("handler %q: the note %q must have at most %d bytes of UTF-8 without control characters", x.ID, x.Note, MaxText)
	}
	return nil
}

// Pace returns the average interval between claimed tasks at the Rate, and how many tasks
// may be claimed at one time. Both are 0 without a Rate.
func (l *Limit) Pace() (interval Time, burst int64) {
	if l.Rate == 0 {
		return 0, 0
	}
	cappedRate := min(l.Rate, 1e6)
	return Time(min(math.Ceil(1e6/cappedRate), float64(MaxDelay.Microseconds()))), max(1, int64(cappedRate/10))
}

func (x *Item) checkLimit() error {
	if x.Limit == nil || !IsName(x.ID) && (*x.Limit != Limit{} || x.ID == "") {
		return invalidf("the Limit is missing, or the handler's name %q does not have "+nameRule, x.ID)
	}
	isValid := func(l Limit) bool {
		return l.Concurrency >= 0 && l.Concurrency <= maxCount && (l.Rate == 0 || l.Rate >= MinRate && l.Rate <= MaxRate)
	}
	if l := x.Limit; !isValid(*l) || !isValid(l.OfGroup()) {
		return invalidf("handler %q: the limit must be 0, or a Concurrency of up to %d or a Rate from %g to %g, got %+v", Shorten(x.ID), maxCount, MinRate, MaxRate, *l)
	}
	return nil
}
