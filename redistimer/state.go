package redistimer

import (
	"strconv"
	"strings"
	"time"
)

// A run is the state of a run that has begun, as scripts/begin.lua has it.
type run struct {
	token    int64
	attempts int
	crashes  int
	due      time.Time
	stopping bool
	next     time.Time // zero: nothing follows, and the next attempt is at due
}

func parseRun(s string) run {
	var r run
	f := strings.Split(s, " ")
	if len(f) != 6 {
		return r
	}
	r.token, _ = strconv.ParseInt(f[0], 10, 64)
	r.attempts, _ = strconv.Atoi(f[1])
	r.crashes, _ = strconv.Atoi(f[2])
	r.due = parseTime(f[3])
	r.stopping = strings.Contains(f[4], "c")
	if f[5] != "-" {
		r.next = parseTime(f[5])
	}
	return r
}

func parseTime(s string) time.Time {
	n, _ := strconv.ParseInt(s, 10, 64)
	return time.UnixMicro(n)
}

// parseFailures takes apart what the scripts have noted: for each attempt its
// number, the time and the text with its length in front.
func parseFailures(s string) []Failure {
	var out []Failure
	for s != "" {
		head, rest, ok := strings.Cut(s, ":")
		f := strings.Split(head, " ")
		if !ok || len(f) != 3 {
			break
		}
		n, err := strconv.Atoi(f[2])
		if err != nil || n < 0 || n > len(rest) {
			break
		}
		attempt, _ := strconv.Atoi(f[0])
		out = append(out, Failure{Attempt: attempt, Time: parseTime(f[1]), Error: rest[:n]})
		s = rest[n:]
	}
	return out
}

// maxText is how much is kept of an attempt's error.
const maxText = 400

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText-3], "") + "..."
}
