package bucket

// # The life of a slot
//
//	         New                  Free
//	fresh ─────────▶ live ─────────────────▶ free ─┐
//	                  ▲                       │    │ generation used up
//	                  └───────── New ─────────┘    ▼
//	                                            retired
//
// A slot's generation names one life of it: it rises by one at Free, so every
// Ref of the life that ended is stale from then on. A fresh slot starts with
// the generation its chunk was made with, which is above every generation that
// an earlier chunk of the same index had used. The arena's owner makes every
// transition; there are no others.
//
// A live slot is in at most one bucket. New leaves it in none.

// Index names a slot of an arena. Zero names none.
type Index uint32

// memory is a chunk's slots: 24 bytes each, and the payload. It is one object, but
// the parts of a slot lie apart in it:
//
//   - The payloads come first. The garbage collector does not scan what lies behind
//     an object's last pointer.
//   - The links lie close to one another: an entry that leaves writes to both of its
//     neighbours, of which it needs nothing else. BenchmarkChurn of package
//     timingwheel is 14 percent faster than with links, deadline and word together.
type memory[T any] struct {
	values [ChunkSize]T // zero in a slot that is not live
	bodies [ChunkSize]body
	links  [ChunkSize]link
}

// body is what a slot has besides links and payload.
type body struct {
	// deadline is the caller's. In a bucket's sentinel it is the bucket's
	// expiration.
	deadline int64
	// word packs generation, grain, tag and place, from the top: see the constants.
	// In a bucket's sentinel the place is the bucket's load. In a free slot the grain
	// is freeGrain.
	word uint64
}

// link holds the neighbours in the bucket's ring. In a free slot next is the next
// free one of the chunk, as position+1, 0 at the end.
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

	// MaxTag is the largest tag an entry can carry.
	MaxTag = 1<<tagBits - 1
	// MaxGrain is the largest grain an entry can carry.
	MaxGrain = freeGrain - 1
	// MaxPlace is the largest place an entry can carry, and the largest load of a
	// bucket.
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

// A Ref names one life of one slot: what a caller keeps to come back to an
// entry. It is comparable and 8 bytes. The zero Ref names nothing.
type Ref struct{ word uint64 } // the generation, above indexBits of the index

// indexBits is how many bits an Index has: an arena has room for 268 million entries.
const indexBits = 28

func refOf(gen uint64, i Index) Ref { return Ref{gen<<indexBits | uint64(i)} }

func (r Ref) gen() uint64  { return r.word >> indexBits }
func (r Ref) index() Index { return Index(r.word & (1<<indexBits - 1)) }

// Foreign returns the n-th of the Refs that no arena gives to an entry, for n from 1
// to 2^36-1: names for what a caller keeps elsewhere, beside an arena's entries.
func Foreign(n uint64) Ref { return refOf(n, 1) } // chunk 0 has no slots
