package redisstore

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// This file encodes and decodes the stored data: see scripts/begin.lua.

const (
	dueSize        = 16
	oldFormat      = '4' // without a version at the end
	recordFormat   = '5'
	versionSize    = 16
	recordHeadSize = dueSize + 1 + 2
)

// whenArg encodes a When for the scripts: 16 digits, after a plus sign if the time counts
// from now.
func whenArg(w store.When) string {
	micros, fromNow := w.Parts()
	b := make([]byte, 0, 1+dueSize)
	if fromNow {
		b = append(b, '+')
	}
	for limit := int64(1e15); limit > 1 && micros < limit; limit /= 10 {
		b = append(b, '0')
	}
	return string(strconv.AppendInt(b, micros, 10))
}

// encodeRecord returns a task's record, to which a script adds the version. It begins with
// the time when, which a script may replace.
func encodeRecord(t *store.Task, when string) string {
	handlerLen := strconv.Itoa(len(t.Handler))
	n := len(handlerLen) + 1 + len(t.Handler) + len(t.Schedule)
	if t.Group != "" {
		n += 1 + len(t.Group)
	}
	var b strings.Builder
	b.Grow(len(when) + recordHeadSize + n + len(t.Record))
	b.WriteString(when)
	b.Write([]byte{recordFormat, byte(n >> 8), byte(n)})
	b.WriteString(handlerLen)
	b.WriteByte(':')
	b.WriteString(t.Handler)
	b.WriteString(t.Schedule)
	if t.Group != "" {
		b.WriteByte(0)
		b.WriteString(t.Group)
	}
	b.Write(t.Record)
	return b.String()
}

// parseRecord decodes a record. From a damaged record it returns only the id. The worker
// that claims the task then finds the damage.
func parseRecord(id, s string) store.Task {
	t := store.Task{ID: id}
	if s, _ = cutVersion(s); len(s) < recordHeadSize {
		return t
	}
	n := int(s[dueSize+1])<<8 | int(s[dueSize+2])
	if s = s[recordHeadSize:]; len(s) < n {
		return t
	}
	handlerLen, names, _ := strings.Cut(s[:n], ":")
	if h, err := strconv.Atoi(handlerLen); err == nil && h >= 0 && h <= len(names) {
		t.Handler = names[:h]
		t.Schedule, t.Group, _ = strings.Cut(names[h:], "\x00")
		if len(s) > n {
			t.Record = []byte(s[n:])
		}
	}
	return t
}

// cutVersion returns a record without its version, and the version. The record is empty if it is
// damaged.
func cutVersion(s string) (record string, version int64) {
	switch {
	case len(s) >= recordHeadSize && s[dueSize] == oldFormat:
		return s, 1
	case len(s) >= recordHeadSize+versionSize && s[dueSize] == recordFormat:
		n := len(s) - versionSize
		version, _ = strconv.ParseInt(s[n:], 10, 64)
		return s[:n], max(1, version)
	}
	return "", 1
}

// A runState is the stored state of a task that was claimed at least once.
type runState struct {
	fencingToken  int64
	attempts      int
	crashes       int
	firstDue      store.Time // when the run was first due
	worker        int64      // the number of the worker of a running task, or 0
	stopping      bool       // the running task was cancelled
	isSuspect     bool
	isPaused      bool
	runsOnce      bool
	hasNewRecord  bool       // the task has a record in follows
	followsAt     string     // when the pending task is due again after its run, or empty
	hasNextOrRuns bool       // nextOrRuns is set
	nextOrRuns    store.Time // time of the next run or attempt, or store.Never; for a dead letter, its number of runs
}

func parseRunState(s string) (r runState, ok bool) {
	f := strings.SplitN(s, " ", 7)
	if len(f) != 7 {
		return r, false
	}
	r.fencingToken, _ = strconv.ParseInt(f[0], 10, 64)
	r.attempts, r.crashes = parseCount(f[1]), parseCount(f[2])
	r.firstDue = parseTime(f[3])
	r.stopping, r.isSuspect, r.hasNewRecord = strings.Contains(f[4], "c"), strings.Contains(f[4], "s"), strings.Contains(f[4], "n")
	r.isPaused, r.runsOnce = strings.Contains(f[4], "p"), strings.Contains(f[4], "o")
	if _, after, ok := strings.Cut(f[4], "f"); ok {
		r.followsAt = strings.TrimRight(after, "abcdeghijklmnopqrstuvwxyz")
	}
	if _, after, ok := strings.Cut(f[4], "w"); ok {
		worker, _ := strconv.ParseInt(strings.TrimRight(after, "abcdefghijklmnopqrstuvxyz"), 10, 64)
		r.worker = max(0, min(worker, store.MaxWorker))
	}
	if r.hasNextOrRuns = f[5] != "-"; r.hasNextOrRuns {
		r.nextOrRuns = parseNext(f[5])
	}
	return r, true
}

// parseTime, parseNext and parseCount return a possible value for any text: workers send it
// back.
func parseTime(s string) store.Time { return min(parseNext(s), store.Farthest) }

// parseNext parses a time that may also be store.Never.
func parseNext(s string) store.Time {
	n, _ := strconv.ParseInt(s, 10, 64)
	return max(0, min(store.Time(n), store.Never))
}

func parseCount(s string) int {
	n, _ := strconv.ParseInt(s, 10, 64)
	return int(max(0, min(n, math.MaxInt32)))
}

// parseEntry decodes one task of a script's answer. f has its record, run, failures, and
// the record that was scheduled while the task runs.
func parseEntry(id string, state store.State, at store.Time, f []string) store.Entry {
	e := store.Entry{Task: parseRecord(id, f[0]), State: state, At: at, Due: at, Failures: parseFailures(f[2])}
	if state != store.Past {
		_, e.Version = cutVersion(f[0])
	}
	r, ok := parseRunState(f[1])
	if !ok {
		return e
	}
	e.Due, e.Attempts, e.Crashes, e.Suspect = r.firstDue, r.attempts, r.crashes, r.isSuspect
	if state <= store.Running {
		e.Paused, e.Once = r.isPaused, r.isPaused && r.runsOnce && state == store.Pending
	}
	switch {
	case state == store.Running:
		e.Token, e.Worker, e.Stopping = r.fencingToken, r.worker, r.stopping
		e.Following, e.Next = r.hasNextOrRuns, r.nextOrRuns
	case state == store.Pending && r.followsAt != "":
		e.Following, e.Next = true, parseNext(r.followsAt)
	case state >= store.Dead && r.hasNextOrRuns:
		e.Runs = int(min(r.nextOrRuns, math.MaxInt32))
	}
	if e.Following && r.hasNewRecord && f[3] != "" {
		next := parseRecord(id, f[3])
		e.NextTask = &next
	}
	return e
}

// parseFailures decodes the failures that the scripts store. Each consists of the
// attempt's number, the time, the text's length, the number of hand-backs if it is not
// zero, and the text.
func parseFailures(s string) []store.Failure {
	var out []store.Failure
	for s != "" {
		head, rest, ok := strings.Cut(s, ":")
		f := strings.Split(head, " ")
		if !ok || len(f) < 3 || len(f) > 4 {
			break
		}
		n, err := strconv.Atoi(f[2])
		if err != nil || n < 0 || n > len(rest) {
			break
		}
		handBacks := 0
		if len(f) == 4 {
			handBacks = parseCount(f[3])
		}
		out = append(out, store.Failure{Attempt: parseCount(f[0]), Time: parseTime(f[1]), Text: rest[:n], HandBacks: handBacks})
		s = rest[n:]
	}
	return out
}

// encodeFailures is the inverse of parseFailures.
func encodeFailures(list []store.Failure) string {
	var b []byte
	for _, f := range list {
		b = strconv.AppendInt(b, int64(f.Attempt), 10)
		b = strconv.AppendInt(append(b, ' '), int64(f.Time), 10)
		b = strconv.AppendInt(append(b, ' '), int64(len(f.Text)), 10)
		if f.HandBacks > 0 {
			b = strconv.AppendInt(append(b, ' '), int64(f.HandBacks), 10)
		}
		b = append(append(b, ':'), f.Text...)
	}
	return string(b)
}

// parseNames decodes names that follow one another, each after its length and a colon.
func parseNames(s string) (names []string) {
	for {
		length, rest, _ := strings.Cut(s, ":")
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(rest) {
			return names
		}
		names, s = append(names, rest[:n]), rest[n:]
	}
}

// notePauses sets HandlerPaused of entries. halted has the paused handlers, as the scripts
// return them.
func notePauses(entries []store.Entry, halted string) {
	if halted == "" {
		return
	}
	names := parseNames(halted)
	for i := range entries {
		e := &entries[i]
		e.HandlerPaused = e.State == store.Pending && slices.Contains(names, e.Handler)
	}
}

// decodeStrings decodes a list of strings and numbers; it returns the numbers as text.
func decodeStrings(v any) ([]string, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	texts := make([]string, len(list))
	for i, x := range list {
		switch x := x.(type) {
		case string:
			texts[i] = x
		case int64:
			texts[i] = strconv.FormatInt(x, 10)
		default:
			return nil, false
		}
	}
	return texts, true
}
