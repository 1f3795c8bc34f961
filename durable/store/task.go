package store

import (
	"bytes"
	"strconv"
	"strings"
)

// A Task is the content of a task, without its state. A store gives it only to workers
// that have its Handler and its Schedule: see [Claim]. Only the functions of this package
// interpret the Record.
//
// Later versions may add fields: a store should encode a Task with a version number.
type Task struct {
	ID       string
	Handler  string
	Schedule string
	Record   []byte
	// Group is a name, or empty. [Limit] says what groups are for.
	Group string `json:",omitempty"`
}

// GenerationSize is the number of bytes of a generation, which distinguishes two requested
// runs with the same key and time. In a record, it follows the first byte, the version.
const GenerationSize = 6

// Renew sets the task's generation, in a copy of its record. If generation is empty or the
// record is too short, Renew changes nothing and returns false.
func (t *Task) Renew(generation string) bool {
	if generation == "" || len(t.Record) < 1+len(generation) {
		return false
	}
	t.Record = bytes.Clone(t.Record)
	copy(t.Record[1:], generation)
	return true
}

// Same reports whether two tasks have the same content, apart from the generation.
func (t *Task) Same(x *Task) bool {
	if t.Handler != x.Handler || t.Schedule != x.Schedule || t.Group != x.Group || len(t.Record) != len(x.Record) {
		return false
	}
	const from, to = 1, 1 + GenerationSize
	if len(t.Record) < to {
		return bytes.Equal(t.Record, x.Record)
	}
	return bytes.Equal(t.Record[:from], x.Record[:from]) && bytes.Equal(t.Record[to:], x.Record[to:])
}

// Repeats reports whether the task is due again after its present run: it has a schedule,
// or its record has version 1 or 2 and the bit 8 in the byte after the generation. A requeued run
// does not repeat: see [SingleID].
func (t *Task) Repeats() bool {
	const fields, bit = 1 + GenerationSize, 8
	return !IsSingle(t.ID) && (t.Schedule != "" ||
		len(t.Record) > fields && t.hasFields() && t.Record[fields]&bit != 0)
}

// The id of a task is its key, with one exception: all failed runs of a repeating task share
// one dead letter, whose id is a [DeadID]. A requeued dead letter of this kind becomes a task
// whose id is a [SingleID]. All ids with the same key are in the same shard.

// DeadID returns the id of the dead letter of a repeating task: the key and a NUL.
func DeadID(key string) string { return key + "\x00" }

// SingleID returns the id of a requeued run: the key, a NUL and when the run was due.
func SingleID(key string, due Time) string { return DeadID(key) + strconv.FormatInt(int64(due), 10) }

// KeyOf returns the key in an id.
func KeyOf(id string) string {
	key, _, _ := strings.Cut(id, "\x00")
	return key
}

// IsSingle reports whether the id is more than a key, such as a [SingleID] or a
// [DeadID]. Such an entry does not repeat.
func IsSingle(id string) bool { return strings.IndexByte(id, 0) >= 0 }

// ShardOf returns the shard of an id among n shards. n must be a power of two. The
// result must never change, because stored tasks depend on it.
func ShardOf(id string, n int) int {
	// This is FNV-1a and a final multiplication, which mixes the upper bits best.
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
