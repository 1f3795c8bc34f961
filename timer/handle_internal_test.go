package timer

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/bucket"
)

func TestHandle_IsTwoWords(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Handle{}), uintptr(16))
	// See home.
	require.LessOrEqual(t, unsafe.Sizeof(shard{}), uintptr(512))
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.EqualValues(t, 6*64, unsafe.Sizeof(shard{}))
		require.Zero(t, unsafe.Offsetof(shard{}.shared)%128)
		require.EqualValues(t, 64, unsafe.Sizeof(Timer{}))
	}
}

// A Handle has not the room for every index: the upper bits are the home's.
func TestHandle_MoreThanTwoMillionOnOneShard(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and as many timers as say nothing when they are fewer")
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
			t.Fatalf("timer %d was not stopped once and for all", i)
		}
	}
	require.Zero(t, s.Len())
	h, err := s.Start(time.Hour, f)
	require.NoError(t, err)
	require.False(t, known[h])
}

// Up to the last index that an arena can have, and in any order.
func TestHandle_Homes(t *testing.T) {
	s := New(WithShards(1))
	defer s.Close()
	sh := s.shards.at(0)
	for _, rest := range []uint32{0, 63, 1, 62} {
		id := bucket.Unpack(5<<26|7, rest)
		h := sh.handle(id)
		require.Equal(t, id, h.id())
		require.Equal(t, h, sh.handle(id))
		require.Same(t, sh, h.home.sh)
		require.False(t, h.Stop())
		require.False(t, h.Move(time.Second))
	}
	require.Len(t, sh.moreHomes, 63)
}
