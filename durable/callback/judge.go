package callback

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// A Verdict says what becomes of a task.
type Verdict uint8

const (
	Retry   Verdict = iota // another attempt
	Success                // the run is over
	Dead                   // a dead letter
)

func (v Verdict) String() string {
	switch v {
	case Retry:
		return "retry"
	case Success:
		return "success"
	case Dead:
		return "dead"
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// Judge is what is made of a status unless [WithJudge] says otherwise: 2xx is
// Success; 408 Request Timeout, 425 Too Early, 429 Too Many Requests and 5xx are
// Retry; everything else, redirects too, is Dead.
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

// retryAfter returns the delay that a response asks for: seconds, or a date,
// which is compared with the response's own Date if it has one, since the
// receiver's clock may be another. If there is no Retry-After, or its date has
// passed, ok is false, and the worker's own delays apply.
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

// spread adds up to a tenth to a delay, at least a little, so that tasks that were
// put off together do not all come back at one moment. None comes before it.
func spread(d time.Duration) time.Duration {
	d = min(d, maxAfter)
	return d + rand.N(d/10+10*time.Millisecond)
}

// maxAfter leaves a Duration room for a tenth more.
const maxAfter = 100 * 365 * 24 * time.Hour
