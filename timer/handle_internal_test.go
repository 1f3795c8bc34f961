package timer

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestHandle_IsTwoWords(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Handle{}), uintptr(16))
	// See home.
	require.LessOrEqual(t, unsafe.Sizeof(shard{}), uintptr(512))
}

// A Handle has not the room for every index: the upper bits are the home's.
func TestHandle_MoreThanAMillionOnOneShard(t *testing.T) {
	const n = 1<<20 + 1<<10
	s := New(WithShards(1))
	defer s.Close()
	f := func() {}
	handles := make([]Handle, n)
	known := make(map[Handle]bool, n)
	for i := range handles {
		h, err := s.Start(time.Hour, f)
		require.NoError(t, err)
		handles[i] = h
		known[h] = true
	}
	require.Len(t, known, n)
	require.Len(t, s.shards[0].homes, 2)
	for i, h := range handles {
		if ok := h.Reset(time.Minute); !ok {
			t.Fatalf("timer %d was not reset", i)
		}
	}
	for i, h := range handles {
		if !h.Stop() || h.Stop() || h.Reset(time.Minute) {
			t.Fatalf("timer %d was not stopped once and for all", i)
		}
	}
	require.Zero(t, s.Len())
	h, err := s.Start(time.Hour, f)
	require.NoError(t, err)
	require.NotContains(t, known, h)
}
