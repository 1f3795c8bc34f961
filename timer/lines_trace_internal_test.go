package timer

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// lineMarks are written before each operation of TestScheduler_LinesTouched, each of a
// line of its own: in a trace of memory they say which operation begins.
var lineMarks [6]struct {
	n uint64
	_ [120]byte
}

//go:noinline
func markLines(i int) { lineMarks[i].n++ }

// TestScheduler_LinesTouched starts, stops and resets timers as docs/scaling.md counts
// the cache lines of, and sees that they do what they should. With -v it prints where
// what it touches lies: that, and a trace of its accesses to memory, are what
// benchmarks/scaling/lines reads.
func TestScheduler_LinesTouched(t *testing.T) {
	const pending, rounds = 4096, 40
	s := New()
	defer s.Close()
	s.shards.spread.Store(true) // each proc on a shard of its own, by its token
	rng := rand.New(rand.NewPCG(1, 2))
	later := func() time.Duration { return time.Minute + time.Duration(rng.Int64N(int64(10*time.Minute))) }
	start := func(d time.Duration) Handle {
		h, err := s.Start(d, nothing)
		require.NoError(t, err)
		return h
	}
	hs := make([]Handle, pending)
	for i := range hs {
		hs[i] = start(later())
	}
	start(time.Hour).Stop() // the level above is made
	if testing.Verbose() {
		printRegions(s, hs[0].home.sh)
	}
	marked := lineMarks[5].n // with -count
	var stopped [4]bool
	for range rounds {
		one, two, three, d := rng.IntN(pending/2), pending/2+rng.IntN(pending/4), pending*3/4+rng.IntN(pending/4), later()
		// In a bucket of its own: each minute is several of them away from the next.
		far := time.Hour + time.Duration(rng.IntN(600))*time.Minute
		markLines(0)
		h, err := s.Start(d, nothing)
		markLines(1)
		stopped[0] = h.Stop()
		markLines(2)
		stopped[1] = hs[one].Stop()
		markLines(3)
		stopped[2] = hs[two].Reset(12 * time.Minute)
		markLines(4)
		first, err2 := s.Start(far, nothing)
		markLines(5)
		stopped[3] = first.Stop()
		require.NoError(t, err)
		require.NoError(t, err2)
		require.Equal(t, [4]bool{true, true, true, true}, stopped)
		hs[one], hs[three] = start(later()), hs[two]
		hs[two] = start(later())
	}
	require.EqualValues(t, rounds, lineMarks[5].n-marked)
}

// printRegions prints where what a Scheduler consists of lies in memory.
func printRegions(s *Scheduler, sh *shard) {
	// Addresses are numbers: what is passed as a pointer may be moved to the heap.
	region := func(name string, at, size uintptr) { fmt.Printf("region %#x %d %s\n", at, size, name) }
	object := func(name string, p reflect.Value) { region(name, p.Pointer(), p.Type().Elem().Size()) }
	var walk func(name string, v reflect.Value)
	walk = func(name string, v reflect.Value) { // the slices in v, and in their elements
		switch v.Kind() {
		case reflect.Slice:
			region(name, v.Pointer(), uintptr(v.Cap())*v.Type().Elem().Size())
			for i := range v.Len() {
				walk(name, v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(name, v.Field(i))
			}
		}
	}
	for i, name := range []string{"start", "stop", "stop of another", "reset of another", "start of a bucket's first", "end"} {
		object("mark: "+name, reflect.ValueOf(&lineMarks[i]))
	}
	var here byte
	region("stack", uintptr(unsafe.Pointer(&here))&^4095-4096, 3*4096)

	object("Scheduler", reflect.ValueOf(s))
	walk("Scheduler: table of shards", reflect.ValueOf(s.shards.groups))
	tok := s.shards.tokens.Get().(*token)
	s.shards.tokens.Put(tok)
	object("token", reflect.ValueOf(tok))
	object("shard", reflect.ValueOf(sh))

	object("wheel", reflect.ValueOf(sh.wheel))
	wheel := reflect.ValueOf(sh.wheel).Elem()
	walk("wheel: levels", wheel.FieldByName("levels"))
	arena := wheel.FieldByName("arena")
	walk("slab: table", arena.FieldByName("dir"))
	walk("slab: chunks", arena.FieldByName("chunks"))
	for i := range arena.FieldByName("dir").Len() {
		chunk := arena.FieldByName("dir").Index(i)
		if chunk.IsNil() {
			continue
		}
		for _, part := range []string{"values", "bodies", "links"} {
			f, _ := chunk.Type().Elem().FieldByName(part)
			region("slots: "+part, chunk.Pointer()+f.Offset, f.Type.Size())
		}
	}

	queue := reflect.ValueOf(s.queue)
	object("queue", queue)
	heap := queue.Elem().FieldByName("order").Field(0)
	object("queue: order", heap)
	list := heap.Elem().FieldByName("list")
	object("queue: order", list)
	walk("queue: order", list.Elem())
	walk("queue: elements", queue.Elem().FieldByName("slab"))
}
