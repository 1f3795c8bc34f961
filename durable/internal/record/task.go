package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/store"
)

// A Task is what a record contains: the task without the key, the handler, the schedule and
// the group, which are in the [store.Task] around the record:
//
//	version     1 byte: 1, or 2 for a task with follow-ups or a follow-up
//	generation  6 random bytes, another for each run that a command starts
//	fields      1 byte: a bit for each optional field that follows
//	optional    Keeping, then the others in the order of the bits
//	body        the remaining bytes
//	follow-ups  only with version 2: see [store.FollowUps]
//
// Numbers and lengths are varints, durations are in microseconds.
type Task struct {
	Keeping     store.Keeping
	Headers     map[string]string
	MaxAttempts int
	Timeout     time.Duration
	Every       time.Duration
	Missed      byte
	MissedAfter time.Duration
	Cron, Zone  string
	Start, End  time.Time
	Body        []byte
	// Success and Failure are the follow-ups, made by [FollowUp], or nil.
	Success, Failure *store.Task
}

const (
	firstVersion   = 1
	lastVersion    = 2
	generationSize = store.GenerationSize
	headSize       = 1 + generationSize + 1
)

const (
	hasHeaders = 1 << iota
	hasMaxAttempts
	hasTimeout
	hasEvery
	hasMissed
	hasCron        // hasEvery is set too, with a zero Every: stores read it as "repeats"
	hasStartAndEnd // Start and End
	hasKeeping     // in front of all other fields, because stores read it
)

// maxFixedBytes is the maximum size of a record without names, headers and body.
const maxFixedBytes = 96 + store.KeepingSize

// followUpBytes is what a follow-up counts beside its encoded form: its record must have room
// for what the store adds.
const followUpBytes = 512

// Size returns what the parts of a record that have any length count in the size of a task.
func (t *Task) Size() int {
	n := len(t.Cron) + len(t.Zone) + len(t.Body)
	for k, v := range t.Headers {
		n += len(k) + len(v) + 2*binary.MaxVarintLen16
	}
	for _, f := range []*store.Task{t.Success, t.Failure} {
		if f != nil {
			n += followUpBytes + len(f.Handler) + len(f.Record)
		}
	}
	return n
}

// Encode returns the record, with a new generation from r.
func (t *Task) Encode(r *random.Source) []byte {
	b := make([]byte, 1, t.Size()+maxFixedBytes)
	b[0] = firstVersion
	if t.Success != nil || t.Failure != nil {
		b[0] = lastVersion
	}
	b = append(AppendGeneration(b, r), 0)
	fieldBits := &b[len(b)-1]
	if t.Keeping != (store.Keeping{}) {
		*fieldBits |= hasKeeping
		b = t.Keeping.Append(b)
	}
	if len(t.Headers) > 0 {
		*fieldBits |= hasHeaders
		b = binary.AppendUvarint(b, uint64(len(t.Headers)))
		for _, k := range slices.Sorted(maps.Keys(t.Headers)) {
			b = appendString(appendString(b, k), t.Headers[k])
		}
	}
	if t.MaxAttempts > 0 {
		*fieldBits |= hasMaxAttempts
		b = binary.AppendUvarint(b, uint64(t.MaxAttempts))
	}
	if t.Timeout > 0 {
		*fieldBits |= hasTimeout
		b = appendDuration(b, t.Timeout)
	}
	if t.Every > 0 || t.Cron != "" {
		*fieldBits |= hasEvery
		b = appendDuration(b, t.Every)
	}
	if t.Missed != 0 {
		*fieldBits |= hasMissed
		b = appendDuration(append(b, t.Missed), t.MissedAfter)
	}
	if t.Cron != "" {
		*fieldBits |= hasCron
		b = appendString(appendString(b, t.Cron), t.Zone)
	}
	if !t.Start.IsZero() || !t.End.IsZero() {
		*fieldBits |= hasStartAndEnd
		b = appendTime(appendTime(b, t.Start), t.End)
	}
	b = append(b, t.Body...)
	if b[0] == lastVersion {
		b = (&store.FollowUps{Success: t.Success, Failure: t.Failure}).Append(b)
	}
	return b
}

// FollowUp returns an encoded task as it stands in the record of the task that it follows: of
// version 2, with the generation 0. The store sets the generation.
func FollowUp(x store.Task) *store.Task {
	if x.Record[0] == firstVersion {
		x.Record = new(store.FollowUps).Append(x.Record)
		x.Record[0] = lastVersion
	}
	clear(x.Record[1 : 1+generationSize])
	return &x
}

// AppendGeneration appends a random generation.
func AppendGeneration(b []byte, r *random.Source) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(random.N(r, int64(1)<<(8*generationSize))))[:len(b)+generationSize]
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendDuration(b []byte, d time.Duration) []byte {
	return binary.AppendUvarint(b, uint64((d+time.Microsecond-1)/time.Microsecond))
}

// appendTime appends a time in microseconds, or 0 for the zero time.
func appendTime(b []byte, t time.Time) []byte {
	var micros store.Time
	if !t.IsZero() {
		micros = max(1, store.TimeOf(t))
	}
	return binary.AppendUvarint(b, uint64(micros))
}

var (
	// ErrDamaged is the error for a record that is damaged.
	ErrDamaged = errors.New("durable: a task's record is damaged")
	// ErrNewer is the error for a record that a later version of this package wrote.
	ErrNewer = errors.New("durable: a task's record has an unknown version")
)

// Decode decodes the record of a store's task, and returns its generation too.
func Decode(x *store.Task) (t Task, generation string, err error) {
	if len(x.Record) > 0 && x.Record[0] > lastVersion {
		return t, "", fmt.Errorf("%w: %d", ErrNewer, x.Record[0])
	}
	if len(x.Record) < headSize || x.Record[0] < firstVersion {
		return t, "", ErrDamaged
	}
	generation = string(x.Record[1 : 1+generationSize])
	fieldBits := x.Record[headSize-1]
	end := len(x.Record)
	if x.Record[0] == lastVersion {
		f, size, ok := x.FollowUps()
		if !ok {
			return t, generation, ErrDamaged
		}
		t.Success, t.Failure, end = f.Success, f.Failure, size
	}
	r := reader{unread: x.Record[headSize:end]}
	if fieldBits&hasKeeping != 0 {
		k, ok := x.Keeps()
		if !ok {
			return t, generation, ErrDamaged
		}
		t.Keeping = k
		r.unread = r.unread[store.KeepingSize:]
	}
	if fieldBits&hasHeaders != 0 {
		n := r.readUint()
		if n > uint64(len(r.unread)) {
			return t, generation, ErrDamaged
		}
		t.Headers = make(map[string]string, n)
		for range n {
			k := r.readString()
			t.Headers[k] = r.readString()
		}
	}
	if fieldBits&hasMaxAttempts != 0 {
		t.MaxAttempts = int(min(r.readUint(), math.MaxInt32))
	}
	if fieldBits&hasTimeout != 0 {
		t.Timeout = r.readDuration()
	}
	if fieldBits&hasEvery != 0 {
		t.Every = r.readDuration()
	}
	if fieldBits&hasMissed != 0 {
		t.Missed = byte(r.readUint()) // always below 128
		t.MissedAfter = r.readDuration()
	}
	if fieldBits&hasCron != 0 {
		t.Cron = r.readString()
		t.Zone = r.readString()
		r.isDamaged = r.isDamaged || t.Cron == ""
	}
	if fieldBits&hasStartAndEnd != 0 {
		t.Start = r.readTime()
		t.End = r.readTime()
	}
	if r.isDamaged {
		return t, generation, ErrDamaged
	}
	if len(r.unread) > 0 {
		t.Body = bytes.Clone(r.unread)
	}
	return t, generation, nil
}

// A reader decodes a record.
type reader struct {
	unread    []byte
	isDamaged bool
}

func (r *reader) markDamaged() { r.unread, r.isDamaged = nil, true }

func (r *reader) readUint() uint64 {
	n, size := binary.Uvarint(r.unread)
	if size <= 0 {
		r.markDamaged()
		return 0
	}
	r.unread = r.unread[size:]
	return n
}

func (r *reader) readString() string {
	n := r.readUint()
	if n > uint64(len(r.unread)) {
		r.markDamaged()
		return ""
	}
	s := string(r.unread[:n])
	r.unread = r.unread[n:]
	return s
}

func (r *reader) readTime() (t time.Time) {
	if n := r.readUint(); n > uint64(store.Farthest) {
		r.markDamaged()
	} else if n > 0 {
		t = store.Time(n).Std()
	}
	return t
}

func (r *reader) readDuration() time.Duration {
	n := r.readUint()
	if n > uint64(1<<63-1)/uint64(time.Microsecond) {
		r.markDamaged()
		return 0
	}
	return time.Duration(n) * time.Microsecond
}
