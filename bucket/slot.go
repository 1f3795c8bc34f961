package bucket

// # The life of a slot
//
//	         New                  Free
//	fresh ─────────▶ live ─────────────────▶ free ─┐
//	                  ▲                       │    │ generation used up
//	                  └───────── New ─────────┘    ▼
//	                                            retired
//
// A slot's generation numbers its lives. Free raises the generation by one, which makes
// every Ref to the ended life stale. The fresh slots of a chunk start with a generation
// that no earlier chunk with the same number has used. Only the arena's owner makes these
// transitions.
//
// A live slot is in at most one bucket. After New it is in none.

// Index is the number of a slot in an arena. Zero means no slot.
type Index uint32

// memory holds the slots of a chunk: 24 bytes and the payload for each. It is one object,
// with an array for each part of a slot:
//
//   - The payloads come first. The garbage collector does not scan an object beyond its last
//     pointer.
//   - The links lie close together: an entry that is unlinked writes to the links of both
//     neighbours and reads nothing else of them. That makes BenchmarkChurn of package
//     timingwheel 14 percent faster than links next to deadline and word.
type memory[T any] struct {
	values [ChunkSize]T // zero in a slot that is not live
	bodies [ChunkSize]body
	links  [ChunkSize]link
}

// body is a slot without its links and payload.
type body struct {
	// deadline is the entry's deadline. In a bucket's sentinel it is the bucket's
	// expiration.
	deadline int64
	// word packs generation, grain, tag and place, from the high bits down. The last
	// three are the caller's: see Arena. In a bucket's sentinel the place is the bucket's
	// load. In a free slot the grain is freeGrain.
	word uint64
}

// link holds a slot's neighbours in its bucket. In a free slot, next is the next free
// slot of the chunk, as position+1, or 0 at the end.
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

	// freeGrain marks a free slot.
	freeGrain = 1<<grainBits - 1

	// MaxTag is the largest tag of an entry.
	MaxTag = 1<<tagBits - 1
	// MaxGrain is the largest grain of an entry.
	MaxGrain = freeGrain - 1
	// MaxPlace is the largest place of an entry, and the largest load of a bucket.
	MaxPlace = placeMask
)

func (s *body) gen() uint64   { return s.word >> genShift }
func (s *body) tag() uint8    { return uint8(s.word>>tagShift) & MaxTag }
func (s *body) place() uint32 { return uint32(s.word & placeMask) }
func (s *body) grain() uint   { return uint(s.word>>grainShift) & freeGrain }
func (s *body) live(g uint64) { s.word = g << genShift }
func (s *body) free(g uint64) { s.word = g<<genShift | grainMask }
func (s *body) isFree() bool  { return s.word&grainMask == grainMask }

func (s *body) setGrain(g uint) {
	s.word = s.word&^grainMask | uint64(g&freeGrain)<<grainShift
}

func (s *body) setPlace(p uint32) { s.word = s.word&^placeMask | uint64(p)&placeMask }

// A Ref refers to one entry, and never to a later entry in the same slot. A caller keeps
// the Ref to find the entry again. It is comparable and 8 bytes. The zero Ref refers to
// no entry.
type Ref struct{ word uint64 } // the generation in the high bits, the index in the low indexBits

// indexBits is the size of an Index in bits: an arena has room for 268 million entries.
const indexBits = 28

func refOf(gen uint64, i Index) Ref { return Ref{gen<<indexBits | uint64(i)} }

func (r Ref) gen() uint64  { return r.word >> indexBits }
func (r Ref) index() Index { return Index(r.word & (1<<indexBits - 1)) }

// Foreign returns the n-th Ref that no arena ever gives to an entry, for n from 1 to
// 2^36-1. A caller may use these Refs for objects of its own beside the entries.
func Foreign(n uint64) Ref { return refOf(n, 1) } // chunk 0 has no slots
