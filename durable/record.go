package durable

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

// A record is the encoded form of a task, without the key, the handler, the schedule and
// the group, which are in the [store.Task] around it:
//
//	version     1 byte: 1, or 2 for a task with follow-ups or a follow-up
//	generation  6 random bytes: see [Delivery.IdempotencyKey]
//	fields      1 byte: a bit for each optional field that follows
//	optional    the fields of hasKeeping, then the others in the order of the bits
//	body        the remaining bytes
//	follow-ups  only with version 2: see [store.FollowUps]
//
// Numbers and lengths are varints, durations are in microseconds.
const (
	recordVersion  = 1
	lastVersion    = 2
	generationSize = store.GenerationSize
	recordHeadSize = 1 + generationSize + 1
)

const (
	hasHeaders = 1 << iota
	hasMaxAttempts
	hasTimeout
	hasEvery
	hasMissed
	hasCron        // hasEvery is set too, with a zero Every: stores read it as "repeats"
	hasStartAndEnd // Start and End
	hasKeeping     // Unique and Retention; in front of all other fields, because stores read them
)

// maxFixedBytes is the maximum size of a record without names, headers and body.
const maxFixedBytes = 96 + store.KeepingSize

// followUpBytes is what a follow-up counts beside its encoded form: its record must have room
// for what the store adds.
const followUpBytes = 512

// encodeTask returns the task as a store's task. If the task is larger than maxBytes,
// it returns an error. The generation comes from r.
func encodeTask(t *Task, maxBytes int, r *random.Source) (store.Task, error) {
	sizeWithoutKey := len(t.Handler) + len(t.Schedule) + len(t.Group) + len(t.Cron) + len(t.Zone) + len(t.Body)
	for k, v := range t.Headers {
		sizeWithoutKey += len(k) + len(v) + 2*binary.MaxVarintLen16
	}
	var followUps store.FollowUps
	for _, f := range []struct {
		task    *Task
		encoded **store.Task
	}{{t.OnSuccess, &followUps.Success}, {t.OnFailure, &followUps.Failure}} {
		x, err := encodeFollowUp(f.task, maxBytes)
		if err != nil {
			return store.Task{}, err
		}
		if *f.encoded = x; x != nil {
			sizeWithoutKey += followUpBytes + len(x.Handler) + len(x.Record)
		}
	}
	if len(t.Key)+sizeWithoutKey > maxBytes {
		return store.Task{}, invalidError("task %q has %d bytes with its headers, more than %d: see WithMaxTask", t.Key, len(t.Key)+sizeWithoutKey, maxBytes)
	}
	b := make([]byte, 1, sizeWithoutKey+maxFixedBytes)
	b[0] = recordVersion
	if t.OnSuccess != nil || t.OnFailure != nil {
		b[0] = lastVersion
	}
	b = appendGeneration(b, r)
	b = append(b, 0)
	fieldBits := &b[len(b)-1]
	if k := (store.Keeping{Unique: t.Unique, For: t.Retention.For, Most: t.Retention.Runs}); k != (store.Keeping{}) {
		*fieldBits |= hasKeeping
		b = k.Append(b)
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
	if t.Missed != LatestMissed {
		*fieldBits |= hasMissed
		b = append(b, byte(t.Missed))
		b = appendDuration(b, t.MissedAfter)
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
		b = followUps.Append(b)
	}
	return store.Task{ID: t.Key, Handler: t.Handler, Schedule: t.Schedule, Group: t.Group, Record: b}, nil
}

// encodeFollowUp returns a follow-up as it stands in a record: of version 2, with the
// generation 0. The store sets the generation.
func encodeFollowUp(t *Task, maxBytes int) (*store.Task, error) {
	if t == nil {
		return nil, nil
	}
	x, err := encodeTask(t, maxBytes, nil)
	if err != nil {
		return nil, err
	}
	if x.Record[0] == recordVersion {
		x.Record = new(store.FollowUps).Append(x.Record)
		x.Record[0] = lastVersion
	}
	clear(x.Record[1 : 1+generationSize])
	return &x, nil
}

// appendGeneration appends a random generation.
func appendGeneration(b []byte, r *random.Source) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(random.N(r, int64(1)<<(8*generationSize))))[:len(b)+generationSize]
}

// newRunItem returns the item of a command that starts another run. The run gets a new
// generation.
func newRunItem(id string, when store.When, r *random.Source) store.Item {
	var b [8]byte
	return store.Item{ID: id, When: when, Generation: string(appendGeneration(b[:0], r))}
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
	errDamagedRecord = errors.New("durable: a task's record is damaged")
	// errNewerRecord is the error for a record that a later version of this package
	// wrote.
	errNewerRecord = errors.New("durable: a task's record has an unknown version")
)

// decodeTask decodes a store's task, and returns its generation too. The requeued run
// of a repeating task does not repeat.
func decodeTask(x *store.Task) (t Task, generation string, err error) {
	t = Task{Key: store.KeyOf(x.ID), Handler: x.Handler, Schedule: x.Schedule, Group: x.Group}
	if len(x.Record) > 0 && x.Record[0] > lastVersion {
		return t, "", fmt.Errorf("%w: %d", errNewerRecord, x.Record[0])
	}
	if len(x.Record) < recordHeadSize || x.Record[0] < recordVersion {
		return t, "", errDamagedRecord
	}
	generation = string(x.Record[1 : 1+generationSize])
	fieldBits := x.Record[recordHeadSize-1]
	end := len(x.Record)
	if x.Record[0] == lastVersion {
		f, size, ok := x.FollowUps()
		if !ok {
			return t, generation, errDamagedRecord
		}
		if t.OnSuccess, err = decodeFollowUp(f.Success); err == nil {
			t.OnFailure, err = decodeFollowUp(f.Failure)
		}
		if end = size; err != nil {
			return t, generation, err
		}
	}
	r := recordReader{unreadBytes: x.Record[recordHeadSize:end]}
	if fieldBits&hasKeeping != 0 {
		k, ok := x.Keeps()
		if !ok {
			return t, generation, errDamagedRecord
		}
		t.Unique, t.Retention = k.Unique, Retention{k.For, k.Most}
		r.unreadBytes = r.unreadBytes[store.KeepingSize:]
	}
	if fieldBits&hasHeaders != 0 {
		n := r.readUint()
		if n > uint64(len(r.unreadBytes)) {
			return t, generation, errDamagedRecord
		}
		t.Headers = make(map[string]string, n)
		for range n {
			k := r.readString()
			t.Headers[k] = r.readString()
		}
	}
	if fieldBits&hasMaxAttempts != 0 {
		n := r.readUint()
		t.MaxAttempts = int(min(n, math.MaxInt32))
	}
	if fieldBits&hasTimeout != 0 {
		t.Timeout = r.readDuration()
	}
	if fieldBits&hasEvery != 0 {
		t.Every = r.readDuration()
	}
	if fieldBits&hasMissed != 0 {
		t.Missed = Missed(r.readByte())
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
		return t, generation, errDamagedRecord
	}
	if len(r.unreadBytes) > 0 {
		t.Body = bytes.Clone(r.unreadBytes)
	}
	if store.IsSingle(x.ID) {
		t.Every, t.Schedule, t.Cron, t.Zone, t.Start, t.End = 0, "", "", "", time.Time{}, time.Time{}
	}
	return t, generation, nil
}

func decodeFollowUp(x *store.Task) (*Task, error) {
	if x == nil {
		return nil, nil
	}
	t, _, err := decodeTask(x)
	return &t, err
}

// endedOf returns which run a follow-up follows, or nil for another task.
func endedOf(x *store.Task) *Ended {
	e, ok := x.FollowedRun()
	if !ok {
		return nil
	}
	return &Ended{Done: e.Done, Due: timeOrNever(e.Due), Attempts: e.Attempts, Crashes: e.Crashes, Error: e.Text}
}

// A recordReader decodes a record. damaged says that the record is invalid.
type recordReader struct {
	unreadBytes []byte
	isDamaged   bool
}

func (r *recordReader) markDamaged() { r.unreadBytes, r.isDamaged = nil, true }

func (r *recordReader) readByte() byte {
	if len(r.unreadBytes) == 0 {
		r.markDamaged()
		return 0
	}
	b := r.unreadBytes[0]
	r.unreadBytes = r.unreadBytes[1:]
	return b
}

func (r *recordReader) readUint() uint64 {
	n, size := binary.Uvarint(r.unreadBytes)
	if size <= 0 {
		r.markDamaged()
		return 0
	}
	r.unreadBytes = r.unreadBytes[size:]
	return n
}

func (r *recordReader) readString() string {
	n := r.readUint()
	if n > uint64(len(r.unreadBytes)) {
		r.markDamaged()
		return ""
	}
	s := string(r.unreadBytes[:n])
	r.unreadBytes = r.unreadBytes[n:]
	return s
}

func (r *recordReader) readTime() (t time.Time) {
	if n := r.readUint(); n > uint64(store.Farthest) {
		r.markDamaged()
	} else if n > 0 {
		t = store.Time(n).Std()
	}
	return t
}

func (r *recordReader) readDuration() time.Duration {
	n := r.readUint()
	if n > uint64(1<<63-1)/uint64(time.Microsecond) {
		r.markDamaged()
		return 0
	}
	return time.Duration(n) * time.Microsecond
}
