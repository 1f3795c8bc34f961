package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Delivery is one attempt at a task, as the handler gets it. The handler may keep and
// change Body and Headers.
type Delivery struct {
	Key     string
	Handler string
	Group   string // see Task.Group
	Body    []byte
	Headers map[string]string // nil if there are none

	// Due is when the run was first due, to the microsecond. It is the same for all
	// attempts at the run.
	Due time.Time
	// Attempt is the number of this attempt at the run, from 1. Attempts that crashed
	// count. Attempts whose task the worker handed back to the store do not.
	Attempt int
	// MaxAttempts is the number of attempts after which a failed run becomes a dead
	// letter.
	MaxAttempts int
	// Timeout is the task's own: see [Task.Timeout]. It may be zero.
	Timeout time.Duration
	// LastAttempt says that the run becomes a dead letter if this attempt fails.
	LastAttempt bool
	// Crashes is how many earlier attempts ended with a lost lease, usually because the
	// worker crashed.
	Crashes int
	// Token is a fencing token. It is larger than the tokens of all earlier attempts at
	// tasks with the same key. Send it with requests to a receiver that remembers the
	// largest token of each key and refuses smaller ones. Then a worker that has lost
	// its lease does no harm.
	//
	// If the receiver refuses the token, return an ordinary error or [HandBack], not
	// [NoRetry]: the next attempt has a larger token.
	Token int64
	// Concurrency is how many handlers the worker runs at a time: see
	// [WithConcurrency].
	Concurrency int

	// Ended is the run that has ended, if this task is its follow-up: see [Task.OnSuccess].
	// Otherwise it is nil.
	Ended *Ended

	// generation is random. It differs between runs that were scheduled or requeued
	// separately.
	generation string
	// result is where SetResult stores the result. It is nil if the task has no
	// Retention.
	result *[]byte
}

// An Ended is a run that has ended, as its follow-up gets it. The run's key is that of the
// follow-up.
type Ended struct {
	Done     bool      `json:"done"` // the run succeeded
	Due      time.Time `json:"due"`
	Attempts int       `json:"attempts"`
	Crashes  int       `json:"crashes,omitempty"`
	Error    string    `json:"error,omitempty"` // the first 400 bytes of the latest error of a failed run
}

// IdempotencyKey is the same for all attempts at one run, and differs between runs,
// even if they are due at the same time. Each run of a repeating task and each requeued
// run has its own key. A key consists of letters, digits and dashes.
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

// A Handler carries out a task. If it returns an error or panics, the task is tried
// again after a growing delay. When all attempts are used, the run becomes a dead
// letter. The errors of [NoRetry], [RetryAfter] and [HandBack] change this.
//
// The context ends if the attempt's timeout is over, the lease is lost, the task is
// cancelled, or the worker's shutdown timeout is over. [context.Cause] returns the
// reason. Until the handler returns, it occupies its place in the worker, unless it hangs: see
// [WithTimeout].
//
// A run is delivered again after a crash or a lost lease. The earlier attempt may still
// be running then.
type Handler func(ctx context.Context, d Delivery) error

// HandleJSON is like [Worker.Handle], but decodes the task's body from JSON into a T.
// An empty body becomes the zero T. If the body cannot be decoded, the attempt has failed
// and is retried, because a worker of a newer version may know the body's form.
func HandleJSON[T any](w *Worker, name string, h func(ctx context.Context, d Delivery, v T) error, opts ...HandlerOption) {
	if h == nil {
		panic("durable: HandleJSON: nil function")
	}
	w.Handle(name, func(ctx context.Context, d Delivery) error {
		var v T
		if len(d.Body) > 0 {
			if err := json.Unmarshal(d.Body, &v); err != nil {
				return fmt.Errorf("durable: the body is not the JSON of a %T: %w", v, err)
			}
		}
		return h(ctx, d, v)
	}, opts...)
}
