package timer_test

import (
	"math"
	"math/rand/v2"
	"testing"
)

// script makes a run's random choices from a fuzzer's bytes.
type script struct{ data []byte }

// next returns the next n bytes as a number. Bytes after the end of the data are 255, so
// that callbacks start no timers.
func (s *script) next(n int) uint64 {
	var v uint64
	for range n {
		b := byte(math.MaxUint8)
		if len(s.data) > 0 {
			b, s.data = s.data[0], s.data[1:]
		}
		v = v<<8 | uint64(b)
	}
	return v
}

func (s *script) IntN(n int) int {
	if n <= 1<<8 {
		return int(s.next(1) % uint64(n))
	}
	return int(s.next(2) % uint64(n))
}

func (s *script) Int64N(n int64) int64 {
	size := 1
	for ; size < 8 && n>>(8*size) != 0; size++ {
	}
	return int64(s.next(size) % uint64(n))
}

// FuzzScheduler does the operations of the model test. The fuzzer's first two bytes choose
// the case, and the other bytes choose the operations.
func FuzzScheduler(f *testing.F) {
	cases := modelCases()
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 8 {
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		data[0], data[1] = 0, byte(i*len(cases)/8)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var cover coverage
		choices := &script{data}
		r := newModelRun(t, cases[int(choices.next(2))%len(cases)], choices, &cover)
		for len(choices.data) > 0 {
			r.step()
		}
		r.finish()
	})
}
