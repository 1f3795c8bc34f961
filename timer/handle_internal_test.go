package timer

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestHandle_IsTwoWords(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Handle{}), uintptr(16))
	require.LessOrEqual(t, unsafe.Sizeof(shard{}), uintptr(512), "see Handle")
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.EqualValues(t, 4*64, unsafe.Sizeof(shard{}))
		require.Zero(t, unsafe.Offsetof(stoppedTimers{}.stripes)%64)
		require.EqualValues(t, 64, unsafe.Sizeof(Timer{}))
	}
}

func TestHandle_MoreThanTwoMillionOnOneShard(t *testing.T) {
	if testing.Short() {
		t.Skip("needs two million timers")
	}
	const n = 1<<21 + 1<<10
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
	for i, h := range handles {
		if ok := h.Move(time.Minute); !ok {
			t.Fatalf("timer %d was not reset", i)
		}
	}
	for i, h := range handles {
		if !h.Stop() || h.Stop() || h.Move(time.Minute) {
			t.Fatalf("timer %d: Stop failed, or the timer was still pending after Stop", i)
		}
	}
	require.Zero(t, s.Len())
	h, err := s.Start(time.Hour, f)
	require.NoError(t, err)
	require.False(t, known[h])
}
