package redistimer

import (
	"strconv"
	"strings"
)

// A run of a repeating task that failed for good becomes a dead letter by
// itself, while the task goes on. Its id is the task's key, a NUL, and when the
// run was due in microseconds; it is in the same shard, which is found by the
// key alone. Everything else has its key as its id.

func runID(key string, due int64) string { return key + "\x00" + strconv.FormatInt(due, 10) }

func keyOf(id string) string {
	key, _, _ := strings.Cut(id, "\x00")
	return key
}

// single reports whether the id is of a single run of a repeating task, which
// does not repeat.
func single(id string) bool { return strings.IndexByte(id, 0) >= 0 }
