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

// A side is one of the two compared implementations: tickless or time.AfterFunc.
type side struct {
	name string
	// bytesPerTimer is an estimate of the peak memory per timer.
	bytesPerTimer int64
	open          func() timers
}

// timers starts timers with trivial callbacks.
type timers interface {
	// start starts a timer and returns its handle.
	start(d time.Duration) handle
}

// A handle refers to a timer of either side.
type handle struct {
	tickless timer.Handle
	stdlib   *time.Timer // nil: a timer of tickless
}

func (h handle) stop() bool {
	if h.stdlib != nil {
		return h.stdlib.Stop()
	}
	return h.tickless.Stop()
}

var sides = []side{
	{"tickless", 45, func() timers { return ticklessTimers{timer.New()} }},
	{"time.AfterFunc", 180, func() timers { return stdTimers{} }},
}

type ticklessTimers struct{ s *timer.Scheduler }

func (t ticklessTimers) start(d time.Duration) handle {
	h, err := t.s.Start(d, func() {})
	if err != nil {
		panic(err) // impossible: the Scheduler is open and has no limit
	}
	return handle{tickless: h}
}

type stdTimers struct{}

func (stdTimers) start(d time.Duration) handle {
	return handle{stdlib: time.AfterFunc(d, func() {})}
}

// A result is the cost of Count pending timers of one side.
type result struct {
	Count      int           `json:"count"`
	Skipped    string        `json:"skipped,omitempty"` // why nothing was measured
	Failed     string        `json:"failed,omitempty"`  // why the measurement failed
	Insert     time.Duration `json:"insert_ns"`         // to start all timers, on all procs
	HeapBytes  int64         `json:"heap_bytes"`        // live heap
	TotalBytes int64         `json:"total_bytes"`       // memory of the system that the Go runtime holds
	FullGC     time.Duration `json:"full_gc_ns"`
	// The cost of one operation on one proc, in nanoseconds.
	EmptyStartStop float64 `json:"empty_start_stop_ns"` // with no other timer pending
	StartStop      float64 `json:"start_stop_ns"`       // with all timers pending
	Churn          float64 `json:"churn_ns"`            // stop a random timer and start another
}

// measured reports whether r has figures.
func (r *result) measured() bool { return r.Skipped == "" && r.Failed == "" }

const (
	// maxKeptHandles is the largest number of handles that are kept, to stop random timers.
	maxKeptHandles = 1_000_000
	// A figure is the median of numRounds rounds. A round has opsPerRound operations.
	opsPerRound = 100_000
	numRounds   = 9
	// The delays of the timers are between minDelay and maxDelay.
	minDelay = time.Hour
	maxDelay = 11 * time.Hour
)

// measureTimers starts n timers and measures their cost. It leaves them pending: the
// process ends afterwards.
func measureTimers(timers timers, n int) *result {
	r := &result{Count: n}
	delays := newDelays()
	delay := func(i int) time.Duration { return delays[i%len(delays)] }
	startStop := func(i int) { timers.start(delay(i)).stop() }
	r.EmptyStartStop = medianOf(startStop)

	keptHandles := make([]handle, min(n, maxKeptHandles))
	memoryBefore := measure.Memory()
	liveBefore, _ := measure.LiveHeap()
	begin := time.Now()
	var wg sync.WaitGroup
	nprocs := runtime.GOMAXPROCS(0)
	for g := range nprocs {
		wg.Go(func() {
			// keptHandles[first:end] is this goroutine's part. Its handles are spread evenly
			// over the goroutine's timers.
			first, end := len(keptHandles)*g/nprocs, len(keptHandles)*(g+1)/nprocs
			numOwnTimers := n*(g+1)/nprocs - n*g/nprocs
			for i, k := 0, first; i < numOwnTimers; i++ {
				h := timers.start(delay(i))
				if k < end && i >= (k-first)*numOwnTimers/(end-first) {
					keptHandles[k] = h
					k++
				}
			}
		})
	}
	wg.Wait()
	r.Insert = time.Since(begin)
	live, _ := measure.LiveHeap()
	r.HeapBytes = live - liveBefore
	r.TotalBytes = measure.Memory() - memoryBefore

	r.FullGC = fullGC()
	r.StartStop = medianOf(startStop)
	rng := rand.New(rand.NewPCG(1, 2))
	r.Churn = medianOf(func(i int) {
		k := rng.IntN(len(keptHandles))
		if !keptHandles[k].stop() {
			panic("tickless: a timer hours away was not pending")
		}
		keptHandles[k] = timers.start(delay(i))
	})
	runtime.KeepAlive(timers)
	return r
}

// newDelays returns random delays. They are few, so that they fit into the CPU's cache.
func newDelays() []time.Duration {
	rng := rand.New(rand.NewPCG(3, 4))
	delays := make([]time.Duration, 1<<12)
	for i := range delays {
		delays[i] = minDelay + time.Duration(rng.Int64N(int64(maxDelay-minDelay)))
	}
	return delays
}

// medianOf returns the median cost of op, in nanoseconds.
func medianOf(op func(i int)) float64 {
	var rounds []float64
	for range numRounds {
		begin := time.Now()
		for i := range opsPerRound {
			op(i)
		}
		rounds = append(rounds, float64(time.Since(begin).Nanoseconds())/opsPerRound)
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
