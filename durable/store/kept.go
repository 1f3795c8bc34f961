package store

import (
	"fmt"
	"strconv"
	"time"
)

// What is kept of a key when its runs have ended are entries that are Past, until their At.
// Those of the runs, by number, begin with how a run ended; and the head of them, which
// counts them as its Runs, has as its Due until when the key is not scheduled again.

// Keeping is what a task asks to keep.
type Keeping struct {
	// Unique is for how long Schedule of the key is Kept after the task was done.
	Unique time.Duration
	// For is for how long a run is kept after it has ended, and Most how many runs are, the
	// latest ones. If only For is zero they are kept until others take their places.
	For  time.Duration
	Most int
}

const (
	keptBit    = 128 // of the byte behind the generation
	keptTime   = 16
	keptNumber = 6
	// MaxRuns is the largest number of runs that are kept.
	MaxRuns = 999_999
	// MaxResult is the largest size of what a worker says of a run.
	MaxResult = 4<<10 + keptTime
)

// Append appends what a record has behind its byte with the bit 128: Unique and For as 16
// digits of microseconds, and Most as 6 digits.
func (k *Keeping) Append(b []byte) []byte {
	return fmt.Appendf(b, "%016d%016d%06d", micros(k.Unique), micros(k.For), k.Most)
}

// KeepingSize is how much Append appends.
const KeepingSize = 2*keptTime + keptNumber

// Keeps returns what the task asks to keep, by its record, which is of version 1; false if
// that is nothing.
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

// HeadID is the id of the head of what is kept of a key.
func HeadID(key string) string { return key + "\x00h" }

// RunsPrefix is what the ids of a key's runs begin with.
func RunsPrefix(key string) string { return key + "\x00r" }

// RunID is the id of a run that is kept.
func RunID(key string, number int) string { return fmt.Sprintf("%s%012d", RunsPrefix(key), number) }

// RunRecord is the record of a run that is kept: whether it was done or failed, when it
// ended, and what its worker says of it.
func RunRecord(done bool, ended Time, result []byte) []byte {
	how := 'x'
	if done {
		how = 'd'
	}
	return append(fmt.Appendf(nil, "%c%016d", how, ended), result...)
}

// ParseRun takes a record of RunRecord apart.
func ParseRun(record []byte) (done bool, ended Time, result []byte, ok bool) {
	if len(record) < 1+keptTime {
		return false, 0, nil, false
	}
	n, err := strconv.ParseInt(string(record[1:1+keptTime]), 10, 64)
	return record[0] == 'd', Time(n), record[1+keptTime:], err == nil
}
