// Package random is the source of the random pauses and generations of package durable. A
// simulation replaces it, so that the same seed gives the same ones. Names of senders stay
// the runtime's.
package random

import (
	"math/rand/v2"
	"sync"
)

// A Source gives random numbers. The nil *Source is the runtime's generator. A Source is
// safe for concurrent use.
type Source struct {
	mu  sync.Mutex
	rng *rand.Rand
}

// New returns a Source with the numbers of a seed.
func New(seed1, seed2 uint64) *Source { return &Source{rng: rand.New(rand.NewPCG(seed1, seed2))} }

// N returns a random number from 0 to n-1. It panics if n is not positive.
func N[Int ~int | ~int64](s *Source, n Int) Int {
	if s == nil {
		return rand.N(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Int(s.rng.Int64N(int64(n)))
}
