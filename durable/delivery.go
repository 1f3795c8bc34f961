package durable

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// A Delivery is one attempt at a task, as the handler gets it. The handler may keep and
// change Body and Headers.
type Delivery struct {
	Key     string
	Handler string
	Body    []byte
	Headers map[string]string // nil if there are none

	// Due is when the run was first due, to the microsecond. It is the same for all
	// attempts at the run.
	Due time.Time
	// Attempt is the number of this attempt at the run, from 1. Attempts whose worker
	// crashed or whose schedule panicked count. Attempts that were handed back do not.
	Attempt int
	// MaxAttempts is the number of attempts after which a failed run becomes a dead
	// letter.
	MaxAttempts int
	// Crashes is how many earlier attempts ended with a lost lease, usually because the
	// worker crashed.
	Crashes int
	// Token is the fencing token. Each attempt has a larger token than all earlier
	// attempts at tasks with the same key. A handler can send the token with its
	// requests. The receiver remembers the largest token of each key, and refuses
	// smaller ones. So it refuses requests of a worker whose lease another worker has
	// now.
	//
	// If the receiver refuses the token, return an ordinary error or [HandBack], but
	// not [NoRetry]. The lease may still be valid: a repeating task and its requeued
	// run may run at the same time, and the smaller token may arrive last. The next
	// attempt has a larger token.
	Token int64
	// Concurrency is how many handlers the worker runs at a time. A handler can limit
	// itself to a part of these places, and return [HandBack] if the part is in use.
	Concurrency int

	// generation is random. It differs between runs that were scheduled or requeued
	// separately.
	generation string
	// result is where SetResult stores the result. It is nil if the task has no
	// Retention.
	result *[]byte
}

// IdempotencyKey is the same for all attempts at one run, and differs between runs, even
// if they are due at the same time. The next run of a repeating task is another run. So
// is a run that Schedule, Requeue, or the Reschedule of a running task starts. The key
// consists of letters, digits and dashes.
func (d *Delivery) IdempotencyKey() string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(d.generation) {
		b.WriteByte(hex[d.generation[i]>>4])
		b.WriteByte(hex[d.generation[i]&15])
	}
	b.WriteByte('-')
	b.WriteString(strconv.FormatInt(d.Due.UnixMicro(), 36))
	return b.String()
}

// A Handler carries out a task. If it returns nil, the run has succeeded. If it returns
// an error or panics, the worker tries again after exponential delays. When all
// attempts are used, the run becomes a dead letter. The errors of [NoRetry],
// [RetryAfter] and [HandBack] change this.
//
// The context is cancelled in four cases: the attempt's timeout is over, the worker
// could not extend the lease, the task is cancelled, or the worker's shutdown timeout
// is over. context.Cause returns the reason. A handler that does not return still
// occupies its place in the worker.
//
// A run is delivered at least once: after a crash, a lost connection or a lost lease it
// is delivered again. The earlier attempt may still be running then.
type Handler func(ctx context.Context, d Delivery) error
