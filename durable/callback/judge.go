package callback

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// A Verdict says what a response means for its task.
type Verdict uint8

const (
	Retry   Verdict = iota // another attempt
	Success                // the run is over
	Dead                   // a dead letter
)

// Judge is the default of [WithJudge]. It returns Success for 2xx, Retry for 408, 425,
// 429 and 5xx, and Dead for any other status.
func Judge(status int) Verdict {
	switch {
	case status >= 200 && status < 300:
		return Success
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests,
		status >= 500 && status < 600:
		return Retry
	}
	return Dead
}

// retryAfter returns the delay in a Retry-After header, which contains seconds or a
// date. A date is compared with the response's Date header, because the receiver's clock
// may be wrong. ok is false without a positive delay.
func retryAfter(h http.Header, now time.Time) (d time.Duration, ok bool) {
	headerValue := h.Get("Retry-After")
	if headerValue == "" {
		return 0, false
	}
	if n, err := strconv.ParseUint(headerValue, 10, 64); err == nil {
		return time.Duration(min(n, math.MaxInt64/uint64(time.Second))) * time.Second, n > 0
	}
	until, err := http.ParseTime(headerValue)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	d = until.Sub(now)
	return d, d > 0
}

// maxRetryAfter is the longest delay that a Retry-After header can ask for.
const maxRetryAfter = time.Hour

// addJitter limits a delay to maxRetryAfter, and then adds up to a tenth of the delay
// plus 10 ms, at random, so that tasks do not all run at the same time.
func addJitter(d time.Duration) time.Duration {
	d = min(d, maxRetryAfter)
	return d + rand.N(d/10+10*time.Millisecond)
}
