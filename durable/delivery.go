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
	// Token is the fencing token. Of two attempts at tasks with the same key, the later
	// one has the larger token. So the receiver of a handler's requests can recognize
	// requests from a worker that was frozen and continues. It remembers the largest
	// token of each key and refuses smaller ones.
	//
	// If the receiver refuses the token, return an ordinary error or [HandBack], but
	// not [NoRetry]. The lease may be valid: if a repeating task and its requeued run
	// run at the same time, the request with the smaller token may arrive last. The
	// next attempt then has a larger token.
	Token int64
	// Concurrency is how many handlers the worker runs at a time. A handler can use it
	// to limit its own share, and return [HandBack] beyond that.
	Concurrency int

	// generation identifies what was scheduled. Each Schedule, Reschedule and Requeue
	// starts a new one.
	generation string
	// result is where SetResult stores the result. It is nil if the task has no
	// Retention.
	result *[]byte
}

// IdempotencyKey is the same for all attempts at one run. Every other run has another
// key, even if it is due at the same time. That includes the next run of a repeating
// task, a new task with the same Key, and a run that Reschedule or Requeue starts. The
// key consists of letters, digits and dashes.
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
