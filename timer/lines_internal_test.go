package timer

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Fields that every start reads share no cache line with fields that the poller writes.
// Otherwise each write would make the starts on other procs fetch the line again.
func TestScheduler_CacheLines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("this layout is for 64-bit machines")
	}
	const line = 64
	var sh shard
	require.Zero(t, unsafe.Sizeof(sh)%line, "a shard begins where a line does")
	require.GreaterOrEqual(t, unsafe.Sizeof(sh), uintptr(4*line), "no pair of lines has the locks of two shards")

	var s Scheduler
	lineOf := func(offset uintptr) uintptr { return offset / line }
	shards := unsafe.Offsetof(s.shards)
	read := map[string]uintptr{
		"closed":               unsafe.Offsetof(s.closed),
		"shards.firstShard":    shards + unsafe.Offsetof(s.shards.firstShard),
		"shards.usesAllShards": shards + unsafe.Offsetof(s.shards.usesAllShards),
		"queue":                unsafe.Offsetof(s.queue),
		"epoch":                unsafe.Offsetof(s.epoch),
	}
	poller, dispatcher := unsafe.Offsetof(s.poller), unsafe.Offsetof(s.dispatcher)
	written := map[string]uintptr{
		"poller.mu":            poller + unsafe.Offsetof(s.poller.mu),
		"poller.awake":         poller + unsafe.Offsetof(s.poller.awake),
		"expirer.nextBucketAt": poller + unsafe.Offsetof(s.poller.expirer) + unsafe.Offsetof(s.poller.expirer.nextBucketAt),
		"dispatcher.mu":        dispatcher + unsafe.Offsetof(s.dispatcher.mu),
	}
	for r, at := range read {
		for w, by := range written {
			require.NotEqual(t, lineOf(at), lineOf(by), "%s is read by each start, %s is written by the poller", r, w)
		}
	}
	t.Logf("a shard takes %d lines, a Scheduler %d", unsafe.Sizeof(sh)/line, unsafe.Sizeof(s)/line)
}
