package store

import (
	"fmt"
	"time"
)

// Each finished run that is kept is a Past entry, which is deleted when its At has passed.
// A key with such runs also has a head entry: its Runs counts the runs, and its Due is when
// the key may be scheduled again.

// Keeping is what a task asks the store to keep about its finished runs.
type Keeping struct {
	// Unique is how long Schedule of the key returns Kept after a run has succeeded.
	Unique time.Duration
	// For is how long a finished run is kept. Zero means until newer runs replace it.
	For time.Duration
	// Most is how many of the latest runs are kept. Zero means any number, or none if
	// For is zero too.
	Most int
}

const (
	keepingBit  = 128 // in the byte after the generation
	timeDigits  = 16
	countDigits = 6
	// MaxRuns is the largest number of finished runs that are kept.
	MaxRuns = 999_999
	// MaxResult is the largest size of a run's result, in bytes.
	MaxResult = 4<<10 + timeDigits
)

// Append appends k to a record: Unique and For in microseconds, 16 digits each, and Most
// in 6 digits. Before the call, the last byte of b must have the bit 128, which tells
// [Task.Keeps] that k follows.
func (k *Keeping) Append(b []byte) []byte {
	return fmt.Appendf(b, "%016d%016d%06d", micros(k.Unique), micros(k.For), k.Most)
}

// KeepingSize is the number of bytes that Append adds.
const KeepingSize = 2*timeDigits + countDigits

// Keeps returns what the task asks the store to keep about its finished runs. ok is false
// if the task asks for nothing.
func (t *Task) Keeps() (k Keeping, ok bool) {
	const fieldsByte = 1 + GenerationSize
	if len(t.Record) < fieldsByte+1+KeepingSize || !t.hasFields() || t.Record[fieldsByte]&keepingBit == 0 {
		return k, false
	}
	b := t.Record[fieldsByte+1:][:KeepingSize]
	unique, ok1 := parseDigits(b[:timeDigits])
	length, ok2 := parseDigits(b[timeDigits:][:timeDigits])
	most, ok3 := parseDigits(b[2*timeDigits:])
	if !ok1 || !ok2 || !ok3 {
		return k, false
	}
	duration := func(micros int64) time.Duration {
		return time.Duration(min(micros, MaxDelay.Microseconds())) * time.Microsecond
	}
	k = Keeping{duration(unique), duration(length), int(most)}
	return k, k != Keeping{}
}

// HeadID returns the id of a key's head entry.
func HeadID(key string) string { return key + "\x00h" }

// RunsPrefix returns the common prefix of the ids of a key's finished runs.
func RunsPrefix(key string) string { return key + "\x00r" }

// RunID returns the id of a finished run.
func RunID(key string, number int) string { return fmt.Sprintf("%s%012d", RunsPrefix(key), number) }

// RunRecord returns the record of a finished run: whether it succeeded, when it ended,
// and its result.
func RunRecord(done bool, ended Time, result []byte) []byte {
	statusChar := 'x'
	if done {
		statusChar = 'd'
	}
	return append(fmt.Appendf(nil, "%c%016d", statusChar, ended), result...)
}

// ParseRun decodes a record that RunRecord made.
func ParseRun(record []byte) (done bool, ended Time, result []byte, ok bool) {
	if len(record) < 1+timeDigits {
		return false, 0, nil, false
	}
	n, ok := parseDigits(record[1:][:timeDigits])
	return record[0] == 'd', Time(n), record[1+timeDigits:], ok
}
