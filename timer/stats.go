package timer

import (
	"math"
	"math/bits"
	"time"
)

// Stats are counts since the Scheduler was made. At every quiet moment
//
//	Started = Fired + Stopped + HandedBack + FellBack + Pending
//
// and the callback of every timer that fired has run, is running, waits in the
// executor or in Queued, or is counted in Dropped.
type Stats struct {
	// Started counts the times that a timer was started: by Start, AfterFunc
	// and the like, by each tick of a ticker, and by a Reset of a Timer that
	// was not pending.
	Started uint64
	// Fired counts the timers that fired.
	Fired uint64
	// Stopped counts the timers that were stopped before they fired.
	Stopped uint64
	// HandedBack counts the timers that were pending at Close or Shutdown, without
	// those that Close hands back although they had fallen back.
	HandedBack uint64
	// FellBack counts the timers that use a timer of package time, or an alarm of the
	// clock that was given, because too many were pending when they were started, or
	// because they are Tickers with too short a period. It also counts the contexts
	// that were made after Close or were pending then. What becomes of all these is
	// counted nowhere.
	FellBack uint64
	// Pending is the number of timers that have neither fired nor been stopped.
	Pending int

	// Rejected counts the timers that were not started: because the Scheduler was
	// closed or, of Start and of a Keyed, because it had too many pending.
	Rejected uint64
	// Dropped counts the callbacks of fired timers that the executor refused.
	Dropped uint64
	// Queued is the number of callbacks that wait to be handed to an executor that
	// may block its submitter.
	Queued int

	// Wakeups counts how often the poller woke up, EmptyWakeups how often it
	// found nothing to fire and nothing to move down a level.
	Wakeups, EmptyWakeups uint64
	// Cascaded counts the moves of a timer to a lower level of its wheel.
	Cascaded uint64
	// Lateness is how long after its deadline each timer fired.
	Lateness Lateness
}

func (s *Stats) add(n *counts) {
	s.Started += n.started
	s.Fired += n.fired
	s.Stopped += n.stopped
	s.HandedBack += n.handedBack
	s.FellBack += n.fellBack
	s.Rejected += n.rejected
	s.Cascaded += n.cascaded
	s.Lateness.recordMany(0, n.atOnce)
}

// counts is the part of Stats that a shard keeps, under its lock.
type counts struct {
	started, fired, stopped, handedBack, fellBack, rejected, cascaded uint64
	// atOnce counts those fired that were due when they were started or reset. The
	// lateness of the others is kept by the poller, which has fired them.
	atOnce uint64
}

// Lateness is a histogram of durations. Its buckets are an eighth of a power of
// two wide, so that a quantile is at most 12.5 percent above the true one.
type Lateness struct {
	max    time.Duration
	counts [latenessBuckets]uint64
	total  uint64
	sum    float64
}

const (
	latenessSub     = 3
	latenessBuckets = (64 - latenessSub) << latenessSub
)

func (l *Lateness) record(d time.Duration) { l.recordMany(d, 1) }

func (l *Lateness) recordMany(d time.Duration, n uint64) {
	d = max(d, 0)
	l.max = max(l.max, d)
	l.total += n
	l.sum += float64(d) * float64(n)
	l.counts[latenessBucket(d)] += n
}

// latenessBucket maps durations below 8 ns to themselves, and others by their
// highest bit and the three bits below it.
func latenessBucket(d time.Duration) int {
	u := uint64(d)
	shift := max(bits.Len64(u)-latenessSub-1, 0)
	return shift<<latenessSub + int(u>>shift)
}

// latenessLimit is the largest duration in a bucket.
func latenessLimit(bucket int) time.Duration {
	if bucket < 2<<latenessSub {
		return time.Duration(bucket)
	}
	shift := bucket>>latenessSub - 1
	top := uint64(bucket&(1<<latenessSub-1) + 1<<latenessSub)
	return time.Duration((top+1)<<shift - 1)
}

func (l *Lateness) merge(o *Lateness) {
	l.max = max(l.max, o.max)
	l.total += o.total
	l.sum += o.sum
	for i, n := range o.counts {
		l.counts[i] += n
	}
}

// Count returns the number of durations recorded.
func (l Lateness) Count() uint64 { return l.total }

// Max returns the largest duration, zero if there is none.
func (l Lateness) Max() time.Duration { return l.max }

// Mean returns the average, zero if there is none.
func (l Lateness) Mean() time.Duration {
	if l.total == 0 {
		return 0
	}
	return time.Duration(l.sum / float64(l.total))
}

// Quantile returns a duration that a share q of all durations does not exceed, or
// zero if there are none. A q below 0 or NaN counts as 0, one above 1 as 1.
func (l Lateness) Quantile(q float64) time.Duration {
	rank := uint64(1)
	if q > 0 {
		rank = max(rank, uint64(math.Ceil(min(q, 1)*float64(l.total))))
	}
	var seen uint64
	for i, n := range l.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(latenessLimit(i), l.max)
		}
	}
	return l.max
}
