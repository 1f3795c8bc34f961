package store

import (
	"bytes"
	"strconv"
	"strings"
)

// A Task is what a store keeps of a task, apart from its state. The store does not
// interpret the Record, except where this package does. Handler and Schedule are what a
// worker needs to run the task: the store gives it only to such workers. See [Claim].
// Schedule may be empty.
//
// Later versions may add fields, for new ways to order, filter or limit tasks. A store
// that encodes a Task should therefore write a version number first.
type Task struct {
	ID       string
	Handler  string
	Schedule string
	Record   []byte
}

// GenerationSize is the size of a generation: the bytes after the first byte of a
// record, which is the version of the format. Generations distinguish tasks with the
// same key, and requested runs of one task, even if they are due at the same time.
const GenerationSize = 6

// Renew sets the task's generation, in a copy of its record. It returns false and
// changes nothing if the generation is empty or the record is too short.
func (t *Task) Renew(generation string) bool {
	if generation == "" || len(t.Record) < 1+len(generation) {
		return false
	}
	t.Record = bytes.Clone(t.Record)
	copy(t.Record[1:], generation)
	return true
}

// Same reports whether two tasks differ only in their generation.
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

// Repeats reports whether the task repeats. A store does not end such a task, because
// only a worker knows when it is due next. A task repeats if it has a schedule, or if
// its record, of version 1, has bit 8 set in the byte after the generation. A single
// run does not repeat.
func (t *Task) Repeats() bool {
	const version, fields, bit = 1, 1 + GenerationSize, 8
	return !IsSingle(t.ID) && (t.Schedule != "" ||
		len(t.Record) > fields && t.Record[0] == version && t.Record[fields]&bit != 0)
}

// Ids of runs: all failed runs of a repeating task share one dead letter, whose id is
// the key and a NUL. When it is requeued, it becomes a task whose id is the key, a NUL
// and the time at which the run was due. All are in the shard of their key. Other tasks
// have their key as their id.

// DeadID returns the id of the dead letter of a repeating task.
func DeadID(key string) string { return key + "\x00" }

// SingleID returns the id of a requeued run of a repeating task.
func SingleID(key string, due Time) string { return DeadID(key) + strconv.FormatInt(int64(due), 10) }

// KeyOf returns the key in an id.
func KeyOf(id string) string {
	key, _, _ := strings.Cut(id, "\x00")
	return key
}

// IsSingle reports whether the id is that of a run of a repeating task. Such a run does
// not repeat.
func IsSingle(id string) bool { return strings.IndexByte(id, 0) >= 0 }

// ShardOf returns the shard of a task among n shards; n is a power of two. The result
// must never change, because stored tasks depend on it.
func ShardOf(id string, n int) int {
	// FNV-1a. Multiplication mixes the upper bits best, so the shard is taken from
	// those.
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
