package redisstore

import (
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// What scripts/begin.lua says is stored.

const (
	dueSize       = 16
	recordVersion = '3'
	recordHead    = dueSize + 1 + 4
)

// digits16 writes a time in 16 digits.
func digits16(n int64) string {
	var b [dueSize]byte
	return string(appendDigits16(b[:0], n))
}

func appendDigits16(b []byte, n int64) []byte {
	for limit := int64(1e15); limit > 1 && n < limit; limit /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, n, 10)
}

// record returns the record of a task, with a sign and a time in front, unless the time
// is negative: then the script puts it there.
func record(t *store.Task, sign string, due int64) string {
	var b strings.Builder
	b.Grow(len(sign) + recordHead + len(t.Handler) + len(t.Schedule) + len(t.Record))
	b.WriteString(sign)
	if due >= 0 {
		var digits [dueSize]byte
		b.Write(appendDigits16(digits[:0], due))
	}
	b.WriteByte(recordVersion)
	b.Write([]byte{byte(len(t.Handler) >> 8), byte(len(t.Handler)), byte(len(t.Schedule) >> 8), byte(len(t.Schedule))})
	b.WriteString(t.Handler)
	b.WriteString(t.Schedule)
	b.Write(t.Record)
	return b.String()
}

// parseRecord takes a record apart. Of one that is damaged nothing but the id is there,
// so that whoever gets the task finds the damage.
func parseRecord(id, s string) store.Task {
	t := store.Task{ID: id}
	if len(s) < recordHead || s[dueSize] != recordVersion {
		return t
	}
	h := int(s[dueSize+1])<<8 | int(s[dueSize+2])
	c := int(s[dueSize+3])<<8 | int(s[dueSize+4])
	if s = s[recordHead:]; len(s) < h+c {
		return t
	}
	t.Handler, t.Schedule = s[:h], s[h:h+c]
	if len(s) > h+c {
		t.Record = []byte(s[h+c:])
	}
	return t
}

// A run is the state of a run that has begun.
type run struct {
	token    int64
	attempts int
	crashes  int
	due      store.Time
	stopping bool
	follows  bool // there is a next
	next     store.Time
}

func parseRun(s string) (r run, ok bool) {
	f := strings.Split(s, " ")
	if len(f) != 6 {
		return r, false
	}
	r.token, _ = strconv.ParseInt(f[0], 10, 64)
	r.attempts, _ = strconv.Atoi(f[1])
	r.crashes, _ = strconv.Atoi(f[2])
	r.due = parseTime(f[3])
	r.stopping = strings.Contains(f[4], "c")
	if r.follows = f[5] != "-"; r.follows {
		r.next = parseTime(f[5])
	}
	return r, true
}

func parseTime(s string) store.Time {
	n, _ := strconv.ParseInt(s, 10, 64)
	return store.Time(n)
}

// entry makes an entry of what a script says: record, run, failures and the record of
// what follows.
func entry(id string, state store.State, at store.Time, f []string) store.Entry {
	e := store.Entry{Task: parseRecord(id, f[0]), State: state, At: at, Due: at, Failures: parseFailures(f[2])}
	r, ok := parseRun(f[1])
	if !ok {
		return e
	}
	e.Due, e.Attempts, e.Crashes = r.due, r.attempts, r.crashes
	switch {
	case state == store.Running:
		e.Token, e.Stopping = r.token, r.stopping
		if e.Following, e.Next = r.follows, r.next; r.follows && f[3] != "" {
			next := parseRecord(id, f[3])
			e.NextTask = &next
		}
	case state == store.Dead && r.follows:
		e.Runs = int(r.next)
	}
	return e
}

// parseFailures takes apart what the scripts have noted: for each attempt its
// number, the time and the text with its length in front.
func parseFailures(s string) []store.Failure {
	var out []store.Failure
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
		out = append(out, store.Failure{Attempt: attempt, Time: parseTime(f[1]), Text: rest[:n]})
		s = rest[n:]
	}
	return out
}

// failures writes them down as the scripts do.
func failures(list []store.Failure) string {
	var b []byte
	for _, f := range list {
		b = strconv.AppendInt(b, int64(f.Attempt), 10)
		b = strconv.AppendInt(append(b, ' '), int64(f.Time), 10)
		b = strconv.AppendInt(append(b, ' '), int64(len(f.Text)), 10)
		b = append(append(b, ':'), f.Text...)
	}
	return string(b)
}

// words takes an answer that consists of strings and numbers.
func words(v any) ([]string, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, len(list))
	for i, x := range list {
		switch x := x.(type) {
		case string:
			out[i] = x
		case int64:
			out[i] = strconv.FormatInt(x, 10)
		default:
			return nil, false
		}
	}
	return out, true
}
