package redistimer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// A record is a task as Redis keeps it, all but the key:
//
//	due         16 digits: when the task was scheduled for, in microseconds
//	generation  6 bytes, drawn anew for each call of Schedule
//	fields      1 byte: a bit for each optional field that follows, and above
//	            them recordVersion
//	handler     length and bytes
//	optional    in the order of the bits
//	body        what is left
//
// Numbers and lengths are varints, durations count microseconds.
const (
	recordVersion  = 2
	versionShift   = 6
	dueSize        = 16
	generationSize = 6
)

const (
	hasHeaders = 1 << iota
	hasMaxAttempts
	hasTimeout
	hasEvery
	hasSchedule
	hasMissed
)

// overhead bounds what a record has beside names, headers and body.
const overhead = 64 + dueSize

// encode makes a record. Due is empty if it is the script that knows when the task
// is due, and puts it there.
func encode(t *Task, due string) (string, error) {
	size := len(t.Handler) + len(t.Schedule) + len(t.Body)
	for k, v := range t.Headers {
		size += len(k) + len(v) + 2*binary.MaxVarintLen16
	}
	if len(t.Key)+size > MaxTask {
		return "", invalid("task %q has %d bytes with its headers, more than %d", printable(t.Key), len(t.Key)+size, MaxTask)
	}
	b := make([]byte, 0, size+overhead)
	b = append(b, due...)
	b = binary.LittleEndian.AppendUint64(b, rand.Uint64())[:len(due)+generationSize]
	b = append(b, recordVersion<<versionShift)
	fields := len(b) - 1
	b = appendString(b, t.Handler)
	if len(t.Headers) > 0 {
		b[fields] |= hasHeaders
		b = binary.AppendUvarint(b, uint64(len(t.Headers)))
		for _, k := range slices.Sorted(maps.Keys(t.Headers)) {
			b = appendString(appendString(b, k), t.Headers[k])
		}
	}
	if t.MaxAttempts > 0 {
		b[fields] |= hasMaxAttempts
		b = binary.AppendUvarint(b, uint64(t.MaxAttempts))
	}
	if t.Timeout > 0 {
		b[fields] |= hasTimeout
		b = appendDuration(b, t.Timeout)
	}
	if t.Every > 0 {
		b[fields] |= hasEvery
		b = appendDuration(b, t.Every)
	}
	if t.Schedule != "" {
		b[fields] |= hasSchedule
		b = appendString(b, t.Schedule)
	}
	if t.Missed != FireMissed {
		b[fields] |= hasMissed
		b = append(b, byte(t.Missed))
		b = appendDuration(b, t.MissedAfter)
	}
	return string(append(b, t.Body...)), nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendDuration(b []byte, d time.Duration) []byte {
	return binary.AppendUvarint(b, uint64((d+time.Microsecond-1)/time.Microsecond))
}

var errRecord = errors.New("redistimer: a task's record is damaged")

// decode turns a record into a task with the key, and its generation.
func decode(key, record string) (t Task, generation string, err error) {
	t.Key = key
	if len(record) < dueSize+generationSize+1 {
		return t, "", errRecord
	}
	record = record[dueSize:]
	generation = record[:generationSize]
	fields := record[generationSize]
	if v := fields >> versionShift; v != recordVersion {
		return t, generation, fmt.Errorf("redistimer: a task's record has version %d, this package knows %d", v, recordVersion)
	}
	r := reader{rest: record[generationSize+1:]}
	t.Handler = r.string()
	if fields&hasHeaders != 0 {
		n := r.uint()
		if n > uint64(len(r.rest)) {
			return t, generation, errRecord
		}
		t.Headers = make(map[string]string, n)
		for range n {
			k := r.string()
			t.Headers[k] = r.string()
		}
	}
	if fields&hasMaxAttempts != 0 {
		t.MaxAttempts = int(r.uint())
	}
	if fields&hasTimeout != 0 {
		t.Timeout = r.duration()
	}
	if fields&hasEvery != 0 {
		t.Every = r.duration()
	}
	if fields&hasSchedule != 0 {
		t.Schedule = r.string()
	}
	if fields&hasMissed != 0 {
		t.Missed = Missed(r.byte())
		t.MissedAfter = r.duration()
	}
	if r.bad {
		return t, generation, errRecord
	}
	if len(r.rest) > 0 {
		t.Body = []byte(r.rest)
	}
	return t, generation, nil
}

// A reader takes a record apart; bad is whether it was too short.
type reader struct {
	rest string
	bad  bool
}

func (r *reader) fail() { r.rest, r.bad = "", true }

func (r *reader) byte() byte {
	if r.rest == "" {
		r.fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) uint() uint64 {
	var n uint64
	for shift := 0; shift < 64; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	r.fail()
	return 0
}

func (r *reader) string() string {
	n := r.uint()
	if n > uint64(len(r.rest)) {
		r.fail()
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *reader) duration() time.Duration {
	n := r.uint()
	if n > uint64(1<<63-1)/uint64(time.Microsecond) {
		r.fail()
		return 0
	}
	return time.Duration(n) * time.Microsecond
}
