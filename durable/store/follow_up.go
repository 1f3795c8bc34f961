package store

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// A task may ask for another task when a run of it ends: its follow-up. The store schedules
// it, due at once, in the transaction that ends the run. So it comes exactly once for each
// end of a run: after a success, or when the run becomes a dead letter. No follow-up comes
// after a run that was cancelled, or that failed although the task was scheduled again.
//
// A record of version 2 is a record of version 1 with these parts after its end:
//
//	success, failure  the follow-ups: 4 digits with the size of the handler's name, the
//	                  name, and a record of version 2
//	ended             if the task is a follow-up: what has ended, see [RunEnd]
//	sizes             the sizes of success, failure and ended, 6 digits each
//
// A follow-up's record in success or failure has the generation 0 and no ended. The store
// sets both.

const (
	followUpVersion  = 2
	handlerDigits    = 4
	sizeDigits       = 6
	followUpTail     = 3 * sizeDigits
	recordHead       = 1 + GenerationSize + 1
	countDigitsOfEnd = 10
)

// hasFields reports whether the record has a version that this package reads.
func (t *Task) hasFields() bool {
	return len(t.Record) > 0 && (t.Record[0] == 1 || t.Record[0] == followUpVersion)
}

// FollowUps are the parts of a record of version 2 after the record of version 1. Only the
// Handler and Record of the tasks count; nil means no task.
type FollowUps struct {
	Success, Failure *Task
	Ended            []byte
}

// Append appends the parts to a record, whose first byte must be 2.
func (f *FollowUps) Append(b []byte) []byte {
	sizes := ""
	for _, t := range []*Task{f.Success, f.Failure} {
		before := len(b)
		if t != nil {
			b = append(fmt.Appendf(b, "%0*d%s", handlerDigits, len(t.Handler), t.Handler), t.Record...)
		}
		sizes += fmt.Sprintf("%0*d", sizeDigits, len(b)-before)
	}
	b = append(b, f.Ended...)
	return fmt.Appendf(b, "%s%0*d", sizes, sizeDigits, len(f.Ended))
}

// FollowUps returns the parts of a record of version 2, and how many bytes come before them.
// ok is false for a record of another version, or a damaged one.
func (t *Task) FollowUps() (f FollowUps, size int, ok bool) {
	n := len(t.Record) - followUpTail
	if n < recordHead || t.Record[0] != followUpVersion {
		return f, 0, false
	}
	var sizes [3]int
	for i := range sizes {
		x, ok := parseDigits(t.Record[n+i*sizeDigits:][:sizeDigits])
		if sizes[i] = int(x); !ok {
			return f, 0, false
		}
	}
	if size = n - sizes[0] - sizes[1] - sizes[2]; size < recordHead {
		return f, 0, false
	}
	f.Ended = t.Record[n-sizes[2] : n]
	if f.Success, ok = parseFollowUp(t.Record[size:][:sizes[0]]); ok {
		f.Failure, ok = parseFollowUp(t.Record[size+sizes[0]:][:sizes[1]])
	}
	return f, size, ok
}

func parseFollowUp(b []byte) (t *Task, ok bool) {
	if len(b) == 0 {
		return nil, true
	}
	if len(b) < handlerDigits {
		return nil, false
	}
	digits, ok := parseDigits(b[:handlerDigits])
	n := int(digits)
	if b = b[handlerDigits:]; !ok || n == 0 || len(b) < n+recordHead+followUpTail {
		return nil, false
	}
	t = &Task{Handler: string(b[:n]), Record: b[n:]}
	return t, t.Record[0] == followUpVersion && strings.HasSuffix(string(t.Record), strings.Repeat("0", sizeDigits))
}

func parseDigits(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

// ActsAtEnd reports whether the end of a run matters to the store beyond its state: the task
// asks to keep runs, or for a follow-up. See Report.Keep.
func (t *Task) ActsAtEnd() bool {
	_, keeps := t.Keeps()
	return keeps || len(t.Record) > 0 && t.Record[0] == followUpVersion
}

// A RunEnd says which run a follow-up follows.
type RunEnd struct {
	Done              bool // the run succeeded
	Due               Time
	Attempts, Crashes int
	Text              string // of the latest failure, if the run failed
}

// FollowUpID returns the id of the follow-up of a run whose last attempt had the token. It
// differs from all other ids.
func FollowUpID(id string, token int64) string {
	return DeadID(KeyOf(id)) + "0" + strconv.FormatInt(token, 10)
}

// FollowUp returns the task that follows the end of a run, in the same group. ok is false if
// the task asks for none. The generation is the lower 6 bytes of the token, the lowest first.
func (t *Task) FollowUp(e RunEnd, token int64) (x Task, ok bool) {
	f, _, ok := t.FollowUps()
	next := f.Failure
	if e.Done {
		next = f.Success
	}
	if !ok || next == nil {
		return x, false
	}
	b, n := next.Record, len(next.Record)
	generation := binary.LittleEndian.AppendUint64(nil, uint64(token))[:GenerationSize]
	ended := e.encode()
	record := append(append([]byte{followUpVersion}, generation...), b[1+GenerationSize:n-followUpTail]...)
	record = append(append(record, ended...), b[n-followUpTail:n-sizeDigits]...)
	return Task{ID: FollowUpID(t.ID, token), Handler: next.Handler, Group: t.Group, Record: fmt.Appendf(record, "%0*d", sizeDigits, len(ended))}, true
}

func (e *RunEnd) encode() string {
	status := 'x'
	if e.Done {
		status = 'd'
	}
	text := Note(nil, Failure{Text: e.Text})[0].Text
	return fmt.Sprintf("%c%0*d%0*d%0*d%s", status, timeDigits, e.Due, countDigitsOfEnd, e.Attempts, countDigitsOfEnd, e.Crashes, text)
}

// MaxEnded is the largest size of what a follow-up's record says of the ended run.
const MaxEnded = 1 + timeDigits + 2*countDigitsOfEnd + MaxText

// FollowedRun returns which run a follow-up follows. ok is false for other tasks.
func (t *Task) FollowedRun() (e RunEnd, ok bool) {
	const head = 1 + timeDigits + 2*countDigitsOfEnd
	f, _, ok := t.FollowUps()
	if b := f.Ended; ok && len(b) >= head {
		due, ok1 := parseDigits(b[1 : 1+timeDigits])
		attempts, ok2 := parseDigits(b[1+timeDigits:][:countDigitsOfEnd])
		crashes, ok3 := parseDigits(b[1+timeDigits+countDigitsOfEnd:][:countDigitsOfEnd])
		return RunEnd{b[0] == 'd', Time(due), int(min(attempts, maxCount)), int(min(crashes, maxCount)), string(b[head:])}, ok1 && ok2 && ok3
	}
	return e, false
}
