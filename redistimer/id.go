package redistimer

import "strings"

// A run of a repeating task that failed for good becomes a dead letter by
// itself, while the task goes on. The id of the dead letter is the task's key and a
// NUL; it stands for all runs that died. When it is requeued the latest of them
// becomes a task of its own, whose id has the time after the NUL when the run was
// due, in microseconds. All are in the same shard, which is found by the key alone.
// Everything else has its key as its id.

func deadID(key string) string { return key + "\x00" }

func keyOf(id string) string {
	key, _, _ := strings.Cut(id, "\x00")
	return key
}

// single reports whether the id is of a single run of a repeating task, which
// does not repeat.
func single(id string) bool { return strings.IndexByte(id, 0) >= 0 }
