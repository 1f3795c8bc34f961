package bucket

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestMemory_Is24BytesASlotAndThePayload(t *testing.T) {
	require.EqualValues(t, 24*ChunkSize, unsafe.Sizeof(slotArrays[struct{}]{}))
	require.EqualValues(t, (24+8)*ChunkSize, unsafe.Sizeof(slotArrays[int64]{}))
	require.EqualValues(t, (24+unsafe.Sizeof(uintptr(0)))*ChunkSize, unsafe.Sizeof(slotArrays[*int]{}))
	require.Zero(t, unsafe.Offsetof(slotArrays[*int]{}.values), "the garbage collector scans up to the last pointer")
}

func TestRef_IsOneWord(t *testing.T) {
	require.EqualValues(t, 8, unsafe.Sizeof(Ref{}))
	for _, gen := range []uint64{0, 1, 2, 1<<35 - 1, maxGen} {
		for _, index := range []Index{0, 1, ChunkSize, 1<<(indexBits-1) + 1, 1<<indexBits - 1} {
			r := refOf(gen, index)
			require.Equal(t, gen, r.gen())
			require.Equal(t, index, r.index())
		}
	}
}

// Generation, grain, tag and place share a word without overlap.
func TestSlot_FieldsOfTheWordAreApart(t *testing.T) {
	require.GreaterOrEqual(t, genBits, 36, "a slot must not be used up soon")
	for _, gen := range []uint64{1, 2, 1<<35 - 1, maxGen} {
		for tag := range uint8(MaxTag + 1) {
			for _, place := range []uint32{0, 1, MaxPlace - 1, MaxPlace} {
				var s header
				s.setLive(gen)
				require.Zero(t, s.tag())
				require.Zero(t, s.place())
				require.Zero(t, s.grain())
				grain := min(uint(place), MaxGrain)
				s.packedFields |= uint64(tag) << tagShift
				s.setPlace(MaxPlace) // the new place must replace all bits of the old one
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
