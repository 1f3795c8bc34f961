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

	// Due is when the run was first due, to the microsecond. All attempts at a run have
	// the same Due; each run of a repeating task has its own.
	Due time.Time
	// Attempt is the number of this attempt at the run, from 1. Attempts whose worker
	// crashed count, and so do attempts whose schedule panicked before the handler was
	// called. An attempt that was handed back does not count.
	Attempt int
	// MaxAttempts is the number of attempts after which a failed run becomes a dead
	// letter.
	MaxAttempts int
	// Crashes is how many earlier attempts ended with a lost lease.
	Crashes int
	// Token is the fencing token. Of two attempts at tasks with the same key, the later
	// one has the larger token. A receiver that remembers the largest token of each key
	// and refuses smaller ones is safe from a worker that was frozen and continues.
	//
	// If the receiver refuses the token, the handler should return an ordinary error or
	// [HandBack], but not [NoRetry]. If the lease was lost, the worker's report is
	// refused anyway. But a requeued run of a repeating task may run at the same time
	// as the task, with the same key, and the smaller token may arrive last: the next
	// attempt then has a larger token.
	Token int64
	// Concurrency is how many handlers the worker runs at a time. A handler can use it
	// to limit its own share and return [HandBack].
	Concurrency int

	// gen is the generation: it differs between tasks that were scheduled with the same
	// key, and between runs that were requested separately.
	gen string
	// result is where SetResult stores the result, or nil if results are not kept.
	result *[]byte
}

// IdempotencyKey is the same for all attempts at one run of one task, and different for
// everything else: for another run of a repeating task, for a task that is scheduled
// later with the same key, and for a run that Reschedule of a running task or Requeue
// of a dead letter starts, even if it is due at the same time. It consists of letters,
// digits and dashes.
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

// A Handler carries out a task. If it returns nil, the run has succeeded. If it returns
// an error or panics, the worker tries again after exponential delays until all
// attempts are used, and then makes the run a dead letter. [NoRetry], [RetryAfter] and
// [HandBack] return errors that change this.
//
// The context is cancelled when the attempt's timeout is over, when the worker could
// not extend the lease, when the task is cancelled, and when the worker's shutdown
// timeout is over. context.Cause returns the reason. A handler that does not return
// keeps occupying its place in the worker.
//
// A run is delivered at least once: after a crash, a lost connection or a lost lease it
// is delivered again, while the earlier attempt may still be running.
type Handler func(ctx context.Context, d Delivery) error
