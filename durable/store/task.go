package store

import (
	"bytes"
	"strconv"
	"strings"
)

// A Task is what a store keeps of a task besides its state. The Record is bytes to the
// store. Handler and Schedule are what a worker must know to run the task, so that a
// store can give it to those alone: see [Claim]. Schedule is empty if the task needs
// none.
//
// More fields will come, for what stores are to order, filter or limit by: whoever
// writes a Task down puts a version in front.
type Task struct {
	ID       string
	Handler  string
	Schedule string
	Record   []byte
}

// GenerationSize is the size of a generation: the bytes behind the first of a record, which
// is the version of its format. They tell a task from others that have had its key, and the
// runs that it is begun anew for from one another, although they may be due at one time.
const GenerationSize = 6

// Renew gives the task another generation, in a copy of its record. It returns false, and
// changes nothing, if the generation is empty or the record too short to have one.
func (t *Task) Renew(generation string) bool {
	if generation == "" || len(t.Record) < 1+len(generation) {
		return false
	}
	t.Record = bytes.Clone(t.Record)
	copy(t.Record[1:], generation)
	return true
}

// Same reports whether two tasks differ in nothing but their generation.
func (t *Task) Same(x *Task) bool {
	if t.Handler != x.Handler || t.Schedule != x.Schedule || len(t.Record) != len(x.Record) {
		return false
	}
	const from, to = 1, 1 + GenerationSize
	if len(t.Record) < to {
		return bytes.Equal(t.Record, x.Record)
	}
	return bytes.Equal(t.Record[:from], x.Record[:from]) && bytes.Equal(t.Record[to:], x.Record[to:])
}

// Repeats reports whether the task repeats, so that the store does not end it: its worker
// knows when it is due next. It does if it names a schedule, or if its record, of version 1,
// says so in the byte behind the generation, by the bit 8. A single run does not.
func (t *Task) Repeats() bool {
	const version, fields, bit = 1, 1 + GenerationSize, 8
	return !IsSingle(t.ID) && (t.Schedule != "" ||
		len(t.Record) > fields && t.Record[0] == version && t.Record[fields]&bit != 0)
}

// A run of a repeating task that failed for good becomes a dead letter by itself, whose
// id is the key and a NUL. When it is requeued the latest of its runs becomes a task of
// its own, whose id has the time after the NUL when the run was due. All are in the
// shard of their key. All else has its key as its id.

// DeadID is the id of the dead letter that the runs of a repeating task share.
func DeadID(key string) string { return key + "\x00" }

// SingleID is the id of a run of a repeating task that was requeued.
func SingleID(key string, due Time) string { return DeadID(key) + strconv.FormatInt(int64(due), 10) }

// KeyOf returns the key in an id.
func KeyOf(id string) string {
	key, _, _ := strings.Cut(id, "\x00")
	return key
}

// IsSingle reports whether the id is of a single run of a repeating task, which does
// not repeat.
func IsSingle(id string) bool { return strings.IndexByte(id, 0) >= 0 }

// ShardOf returns the shard of a task, of n shards, a power of two. It never changes:
// it says where tasks are that were scheduled by others, long ago.
func ShardOf(id string, n int) int {
	// FNV-1a. Multiplying spreads its bits upwards, where the shard is taken from.
	x := uint64(14695981039346656037)
	for i := range len(id) {
		if id[i] == 0 {
			break // the id of a single run
		}
		x = (x ^ uint64(id[i])) * 1099511628211
	}
	x ^= x >> 32
	x *= 0x9e3779b97f4a7c15
	return int((x >> 48) & uint64(n-1))
}
