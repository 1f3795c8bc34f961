package store

import (
	"fmt"
	"strconv"
	"time"
)

// The data kept of a key's finished runs are Past entries, which are deleted at their
// At. Each run has an entry, numbered, whose record says how the run ended. The head
// entry counts the runs in its Runs. Its Due is the time until which the key cannot be
// scheduled again.

// Keeping is what a task asks the store to keep.
type Keeping struct {
	// Unique is how long Schedule of the key returns Kept after the task has succeeded.
	Unique time.Duration
	// For is how long a finished run is kept, and Most how many of the latest runs. If
	// only For is zero, runs are kept until newer ones replace them.
	For  time.Duration
	Most int
}

const (
	keptBit    = 128 // of the byte behind the generation
	keptTime   = 16
	keptNumber = 6
	// MaxRuns is the largest number of finished runs that are kept.
	MaxRuns = 999_999
	// MaxResult is the largest size of a run's result, in bytes.
	MaxResult = 4<<10 + keptTime
)

// Append appends the encoding of k in a record, which follows the byte with the bit
// 128: Unique and For as 16 digits of microseconds each, and Most as 6 digits.
func (k *Keeping) Append(b []byte) []byte {
	return fmt.Appendf(b, "%016d%016d%06d", micros(k.Unique), micros(k.For), k.Most)
}

// KeepingSize is the number of bytes that Append adds.
const KeepingSize = 2*keptTime + keptNumber

// Keeps returns the Keeping in the task's record. ok is false if the record has none or
// is not of version 1.
func (t *Task) Keeps() (k Keeping, ok bool) {
	const head = 1 + GenerationSize
	if len(t.Record) < head+1+KeepingSize || t.Record[0] != 1 || t.Record[head]&keptBit == 0 {
		return k, false
	}
	digits := string(t.Record[head+1:][:KeepingSize])
	for _, c := range digits {
		if c < '0' || c > '9' {
			return k, false
		}
	}
	number := func(from, size int) int64 {
		n, _ := strconv.ParseInt(digits[from:from+size], 10, 64)
		return n
	}
	k.Unique = time.Duration(min(number(0, keptTime), MaxDelay.Microseconds())) * time.Microsecond
	k.For = time.Duration(min(number(keptTime, keptTime), MaxDelay.Microseconds())) * time.Microsecond
	k.Most = int(number(2*keptTime, keptNumber))
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
	how := 'x'
	if done {
		how = 'd'
	}
	return append(fmt.Appendf(nil, "%c%016d", how, ended), result...)
}

// ParseRun decodes a record of RunRecord.
func ParseRun(record []byte) (done bool, ended Time, result []byte, ok bool) {
	if len(record) < 1+keptTime {
		return false, 0, nil, false
	}
	n, err := strconv.ParseInt(string(record[1:1+keptTime]), 10, 64)
	return record[0] == 'd', Time(n), record[1+keptTime:], err == nil
}
