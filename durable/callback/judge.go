package callback

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// A Verdict says how to treat a response.
type Verdict uint8

const (
	Retry   Verdict = iota // another attempt
	Success                // the run is over
	Dead                   // a dead letter
)

// Judge is the default for [WithJudge]: 2xx is Success; 408 Request Timeout, 425 Too
// Early, 429 Too Many Requests and 5xx are Retry; any other status, including
// redirects, is Dead.
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

// retryAfter returns the delay of a response's Retry-After header: seconds, or a date.
// A date is compared with the response's Date header if it has one, because the
// receiver's clock may be wrong. ok is false if there is no such header or its date has
// passed.
func retryAfter(h http.Header, now time.Time) (d time.Duration, ok bool) {
	s := h.Get("Retry-After")
	if s == "" {
		return 0, false
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return time.Duration(min(n, math.MaxInt64/uint64(time.Second))) * time.Second, n > 0
	}
	at, err := http.ParseTime(s)
	if err != nil {
		return 0, false
	}
	if theirs, err := http.ParseTime(h.Get("Date")); err == nil {
		now = theirs
	}
	d = at.Sub(now)
	return d, d > 0
}

// maxRetryAfter is the longest delay that a receiver can ask for.
const maxRetryAfter = time.Hour

// spread adds up to a tenth and 10 ms to a delay of at most maxRetryAfter, so that tasks
// that were delayed together do not all return at once. The result is never shorter.
func spread(d time.Duration) time.Duration {
	d = min(d, maxRetryAfter)
	return d + rand.N(d/10+10*time.Millisecond)
}
