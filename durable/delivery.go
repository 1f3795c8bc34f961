package durable

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// A Delivery is one attempt at a task, as its handler gets it. The handler owns
// Body and Headers and may keep and change them.
type Delivery struct {
	Key     string
	Handler string
	Body    []byte
	Headers map[string]string // nil if there are none

	// Due is when the task was to run first, to the microsecond: a retry has the
	// same Due, the next run of a repeating task another.
	Due time.Time
	// Attempt counts the attempts at this run from 1, those included whose worker
	// crashed, or whose schedule panicked before the handler was called. An attempt
	// that was handed back does not count.
	Attempt int
	// MaxAttempts is the attempt after which a failure makes a dead letter.
	MaxAttempts int
	// Crashes is how many attempts before have ended with a lost lease.
	Crashes int
	// Token is the fencing token: of two attempts at tasks of one shard, and so of
	// one key, the later has the larger. A receiver that remembers the largest
	// token for each key and refuses what has a smaller one does not suffer from a
	// worker that was frozen and came back.
	//
	// A handler whose receiver refuses its token returns an error that has the task
	// tried again, as most have, or [HandBack], and not [NoRetry]. The report of a worker
	// that has lost its lease is refused anyway. But a requeued run of a repeating task may
	// be under way at the same time as the task itself, with the same key, and the one that
	// began first may arrive last: its next attempt has a larger token.
	Token int64
	// Concurrency is how many handlers the worker runs at a time: for those that
	// share out its places, with [HandBack].
	Concurrency int

	// gen tells apart the tasks that were scheduled with the same key, and the runs of
	// one that were asked for again.
	gen string
	// result is where SetResult puts it; nil if nobody asks.
	result *[]byte
}

// IdempotencyKey is the same for all attempts at one run of one task, and
// differs for any other: for another run of a repeating task, for a task that
// was scheduled later with the same key, and for the run that Reschedule of a
// running task or Requeue of a dead letter asks for, whenever they are due. It
// is made of letters, digits and dashes.
func (d *Delivery) IdempotencyKey() string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(d.gen) {
		b.WriteByte(hex[d.gen[i]>>4])
		b.WriteByte(hex[d.gen[i]&15])
	}
	b.WriteByte('-')
	b.WriteString(strconv.FormatInt(d.Due.UnixMicro(), 36))
	return b.String()
}

// A Handler does what a task asks for. Returning nil ends the run. Another error
// has it tried again later, with exponential delays, until its attempts are used
// up and it becomes a dead letter; [NoRetry], [RetryAfter] and [HandBack] say
// otherwise. A panic counts as an error.
//
// The context is cancelled when the attempt's time is up, when the lease could
// not be prolonged, when the task is cancelled, and when the worker has shut
// down for long enough; context.Cause tells which. A handler that does not
// return then occupies its place in the worker.
//
// A run is delivered at least once: after a crash, a lost connection or a lost
// lease it comes again, and the attempt before may still be under way.
type Handler func(ctx context.Context, d Delivery) error
