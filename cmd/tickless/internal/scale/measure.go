package scale

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/cmd/tickless/internal/measure"
	"github.com/tickless/tickless/timer"
)

// A side is one of the compared implementations.
type side struct {
	name string
	// bytes estimates the memory a timer takes while the timers are started.
	bytes int64
	open  func() timers
}

// timers starts timers with trivial callbacks.
type timers interface {
	// start starts a timer and returns its handle.
	start(d time.Duration) handle
}

// A handle refers to a timer of either side.
type handle struct {
	handle timer.Handle
	timer  *time.Timer
}

func (h handle) stop() bool {
	if h.timer != nil {
		return h.timer.Stop()
	}
	return h.handle.Stop()
}

var sides = []side{
	{"tickless", 45, func() timers { return ticklessTimers{timer.New()} }},
	{"time.AfterFunc", 180, func() timers { return stdTimers{} }},
}

type ticklessTimers struct{ s *timer.Scheduler }

func (t ticklessTimers) start(d time.Duration) handle {
	h, err := t.s.Start(d, func() {})
	if err != nil {
		panic(err) // it is neither closed nor bounded
	}
	return handle{handle: h}
}

type stdTimers struct{}

func (stdTimers) start(d time.Duration) handle {
	return handle{timer: time.AfterFunc(d, func() {})}
}

// A result is the cost of a number of pending timers.
type result struct {
	Count      int           `json:"count"`
	Skipped    string        `json:"skipped,omitempty"` // why nothing was measured
	Failed     string        `json:"failed,omitempty"`  // why the measurement failed
	Insert     time.Duration `json:"insert_ns"`         // to start all, from all procs
	HeapBytes  int64         `json:"heap_bytes"`        // alive
	TotalBytes int64         `json:"total_bytes"`       // what the runtime has of the system's memory
	FullGC     time.Duration `json:"full_gc_ns"`
	// The cost of one operation on one proc, in nanoseconds: first with no timer
	// pending, then with all.
	EmptyStartStop float64 `json:"empty_start_stop_ns"`
	StartStop      float64 `json:"start_stop_ns"`
	Churn          float64 `json:"churn_ns"`
}

// measured reports whether there are figures.
func (r *result) measured() bool { return r.Skipped == "" && r.Failed == "" }

const (
	// maxKept is how many handles are kept, spread evenly over all timers, for random
	// stops.
	maxKept = 1_000_000
	// A round has ops operations. The median round counts.
	ops       = 100_000
	numRounds = 9
	// The timers are due between near and far.
	near = time.Hour
	far  = 11 * time.Hour
)

// measureTimers starts n timers and measures their cost. It does not stop them, because
// the process ends afterwards.
func measureTimers(timers timers, n int) *result {
	r := &result{Count: n}
	delays := newDelays()
	delay := func(i int) time.Duration { return delays[i%len(delays)] }
	startStop := func(i int) { timers.start(delay(i)).stop() }
	r.EmptyStartStop = medianOf(startStop)

	kept := make([]handle, min(n, maxKept))
	before := measure.Memory()
	liveBefore, _ := measure.LiveHeap()
	begin := time.Now()
	var wg sync.WaitGroup
	nprocs := runtime.GOMAXPROCS(0)
	for g := range nprocs {
		wg.Go(func() {
			// Each goroutine fills its part of kept with handles spread evenly over its
			// timers.
			first, end := len(kept)*g/nprocs, len(kept)*(g+1)/nprocs
			own := n*(g+1)/nprocs - n*g/nprocs
			for i, k := 0, first; i < own; i++ {
				h := timers.start(delay(i))
				if k < end && i >= (k-first)*own/(end-first) {
					kept[k] = h
					k++
				}
			}
		})
	}
	wg.Wait()
	r.Insert = time.Since(begin)
	live, _ := measure.LiveHeap()
	r.HeapBytes = live - liveBefore
	r.TotalBytes = measure.Memory() - before

	r.FullGC = fullGC()
	r.StartStop = medianOf(startStop)
	rng := rand.New(rand.NewPCG(1, 2))
	r.Churn = medianOf(func(i int) {
		k := rng.IntN(len(kept))
		if !kept[k].stop() {
			panic("tickless: a timer hours away was not pending")
		}
		kept[k] = timers.start(delay(i))
	})
	runtime.KeepAlive(timers)
	return r
}

// newDelays returns random delays, few enough to fit into the cache.
func newDelays() []time.Duration {
	rng := rand.New(rand.NewPCG(3, 4))
	delays := make([]time.Duration, 1<<12)
	for i := range delays {
		delays[i] = near + time.Duration(rng.Int64N(int64(far-near)))
	}
	return delays
}

// medianOf returns the cost of op in nanoseconds.
func medianOf(op func(i int)) float64 {
	var rounds []float64
	for range numRounds {
		begin := time.Now()
		for i := range ops {
			op(i)
		}
		rounds = append(rounds, float64(time.Since(begin).Nanoseconds())/ops)
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2]
}

// fullGC returns the median duration of a garbage collection.
func fullGC() time.Duration {
	var took []time.Duration
	for range 3 {
		begin := time.Now()
		runtime.GC()
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[len(took)/2]
}
