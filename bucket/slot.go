package bucket

// # The life of a slot
//
//	         New                  Free
//	fresh ─────────▶ live ─────────────────▶ free ─┐
//	                  ▲                       │    │ generation used up
//	                  └───────── New ─────────┘    ▼
//	                                            retired
//
// A slot's generation counts its lives. Free increments the generation, so that Refs to
// the freed entry become stale. If a chunk reuses the number of an earlier chunk, its
// slots start at a generation that is still unused.

// Index is the number of a slot in an arena. Zero means no slot.
type Index uint32

// slotArrays holds the slots of a chunk: 24 bytes and a payload each. values comes first,
// because the garbage collector scans an object up to its last pointer. links is apart
// from headers, because unlinking an entry needs only links.
type slotArrays[T any] struct {
	values  [ChunkSize]T // zero in a slot that is not live
	headers [ChunkSize]header
	links   [ChunkSize]link
}

// header is a slot without its links and payload.
type header struct {
	// deadline is the entry's deadline. In the sentinel of a bucket it is the bucket's
	// expiration.
	deadline int64
	// packedFields has generation, grain, tag and place, from the high bits down. A free
	// slot's grain is freeGrain. A sentinel's place is its bucket's load.
	packedFields uint64
}

// link holds a slot's neighbours in its bucket. In a free slot, next is the position of
// the next free slot plus 1, or 0.
type link struct{ next, prev Index }

const (
	genBits   = 64 - indexBits
	grainBits = 5
	tagBits   = 3
	placeBits = 64 - genBits - grainBits - tagBits

	genShift   = grainBits + tagBits + placeBits
	grainShift = tagBits + placeBits
	tagShift   = placeBits

	maxGen    = 1<<genBits - 1
	grainMask = freeGrain << grainShift
	placeMask = 1<<placeBits - 1

	// freeGrain is the grain of a free slot. No entry has it.
	freeGrain = 1<<grainBits - 1

	// MaxTag is the largest tag of an entry.
	MaxTag = 1<<tagBits - 1
	// MaxGrain is the largest grain of an entry.
	MaxGrain = freeGrain - 1
	// MaxPlace is the largest place of an entry, and the largest load of a bucket.
	MaxPlace = placeMask
)

func (s *header) gen() uint64      { return s.packedFields >> genShift }
func (s *header) tag() uint8       { return uint8(s.packedFields>>tagShift) & MaxTag }
func (s *header) place() uint32    { return uint32(s.packedFields & placeMask) }
func (s *header) grain() uint      { return uint(s.packedFields>>grainShift) & freeGrain }
func (s *header) setLive(g uint64) { s.packedFields = g << genShift }
func (s *header) setFree(g uint64) { s.packedFields = g<<genShift | grainMask }
func (s *header) isFree() bool     { return s.packedFields&grainMask == grainMask }

func (s *header) setGrain(g uint) {
	s.packedFields = s.packedFields&^grainMask | uint64(g&freeGrain)<<grainShift
}

func (s *header) setPlace(p uint32) { s.packedFields = s.packedFields&^placeMask | uint64(p)&placeMask }

// A Ref identifies one entry, and never a later entry in the same slot. It is comparable
// and takes 8 bytes. The zero Ref identifies no entry.
type Ref struct{ genAndIndex uint64 } // the generation in the high bits, the index in the low indexBits

// indexBits is the size of an Index in bits: an arena has room for 268 million entries.
const indexBits = 28

func refOf(gen uint64, i Index) Ref { return Ref{gen<<indexBits | uint64(i)} }

func (r Ref) gen() uint64  { return r.genAndIndex >> indexBits }
func (r Ref) index() Index { return Index(r.genAndIndex & (1<<indexBits - 1)) }

// Foreign returns a Ref that never identifies an entry, so that a caller may use it to
// identify something else. Each n from 1 to 2^36-1 has its own Ref. Package timer uses it for
// timers that are not in a wheel.
func Foreign(n uint64) Ref { return refOf(n, 1) } // chunk 0 has no slots
