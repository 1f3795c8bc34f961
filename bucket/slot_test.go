package bucket

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestMemory_Is24BytesASlotAndThePayload(t *testing.T) {
	require.EqualValues(t, 24*ChunkSize, unsafe.Sizeof(memory[struct{}]{}))
	require.EqualValues(t, (24+8)*ChunkSize, unsafe.Sizeof(memory[int64]{}))
	require.EqualValues(t, (24+unsafe.Sizeof(uintptr(0)))*ChunkSize, unsafe.Sizeof(memory[*int]{}))
	require.Zero(t, unsafe.Offsetof(memory[*int]{}.values), "the garbage collector scans up to the last pointer")
}

func TestRef_IsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Ref{}), uintptr(16))
}

func TestRef_PackAndUnpack(t *testing.T) {
	for _, gen := range []uint64{0, 1, 2, 1<<37 - 1, maxGen} {
		for _, index := range []Index{0, 1, ChunkSize, 1<<packBits - 1, 1 << packBits, 1<<packBits + 1, math.MaxUint32} {
			r := Ref{gen: gen, index: index}
			word, rest := r.Pack()
			require.Equal(t, r, Unpack(word, rest))
			require.EqualValues(t, index>>packBits, rest)
			require.Less(t, rest, uint32(64))
		}
	}
	word, rest := Ref{}.Pack()
	require.Zero(t, word)
	require.Zero(t, rest)
}

// Generation, grain, tag and place share a word and must not reach into each other.
func TestSlot_FieldsOfTheWordAreApart(t *testing.T) {
	require.GreaterOrEqual(t, genBits, 38, "a slot must not be used up soon")
	for _, gen := range []uint64{1, 2, 1<<37 - 1, maxGen} {
		for tag := range uint8(MaxTag + 1) {
			for _, place := range []uint32{0, 1, MaxPlace - 1, MaxPlace} {
				var s body
				s.live(gen)
				require.Zero(t, s.tag())
				require.Zero(t, s.place())
				require.Zero(t, s.grain())
				grain := min(uint(place), MaxGrain)
				s.word |= uint64(tag) << tagShift
				s.setPlace(MaxPlace) // what was there before must not show through
				s.setGrain(MaxGrain)
				s.setPlace(place)
				s.setGrain(grain)
				require.Equal(t, grain, s.grain())
				require.Equal(t, gen, s.gen())
				require.Equal(t, tag, s.tag())
				require.Equal(t, place, s.place())
			}
		}
	}
}

func TestArena_TagAndPlaceBelongToOneLife(t *testing.T) {
	var a Arena[int]
	b := a.NewBuckets(1)
	i, _ := a.Find(a.NewIn(b, 17, 1, MaxTag, 0, MaxPlace))
	require.EqualValues(t, MaxTag, a.Tag(i))
	require.EqualValues(t, MaxPlace, a.Place(i))
	require.EqualValues(t, 17, a.Deadline(i))
	r := a.Ref(i)
	a.SetDeadline(i, -3)
	require.EqualValues(t, -3, a.Deadline(i))
	require.Equal(t, r, a.Ref(i), "neither deadline, tag nor place is part of the name")
	a.Unlink(i)
	a.Free(i)

	j := a.New(0, 2)
	require.Equal(t, i, j, "the test expects the slot to be used again")
	require.Zero(t, a.Tag(j))
	require.Zero(t, a.Place(j))
	require.Zero(t, a.Deadline(j))
}
