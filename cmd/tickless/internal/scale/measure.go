package scale

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/timer"
)

// An implementation is one of the two that are compared: tickless or time.AfterFunc.
type implementation struct {
	name string
	// bytesPerTimer is an estimate of the peak memory per timer.
	bytesPerTimer int64
	open          func() timerStarter
}

// A timerStarter starts timers with trivial callbacks.
type timerStarter interface {
	// start starts a timer and returns its handle.
	start(d time.Duration) handle
}

// A handle refers to a timer of either implementation.
type handle struct {
	ticklessHandle timer.Handle
	stdTimer       *time.Timer // nil: a timer of tickless
}

func (h handle) stop() bool {
	if h.stdTimer != nil {
		return h.stdTimer.Stop()
	}
	return h.ticklessHandle.Stop()
}

var implementations = []implementation{
	{"tickless", 45, func() timerStarter { return ticklessStarter{timer.New()} }},
	{"time.AfterFunc", 180, func() timerStarter { return stdStarter{} }},
}

type ticklessStarter struct{ scheduler *timer.Scheduler }

func (t ticklessStarter) start(d time.Duration) handle {
	h, err := t.scheduler.Start(d, func() {})
	if err != nil {
		panic(err) // impossible: the Scheduler is open and has no limit
	}
	return handle{ticklessHandle: h}
}

type stdStarter struct{}

func (stdStarter) start(d time.Duration) handle {
	return handle{stdTimer: time.AfterFunc(d, func() {})}
}

// A result is the cost of Count pending timers of one implementation.
type result struct {
	Count      int           `json:"count"`
	InsertTime time.Duration `json:"insert_ns"`   // to start all timers, on all procs
	HeapBytes  int64         `json:"heap_bytes"`  // live heap
	TotalBytes int64         `json:"total_bytes"` // memory of the system that the Go runtime holds
	FullGCTime time.Duration `json:"full_gc_ns"`
	// The cost of one operation on one proc, in nanoseconds.
	EmptyStartStopNs float64 `json:"empty_start_stop_ns"` // with no other timer pending
	StartStopNs      float64 `json:"start_stop_ns"`       // with all timers pending
	ChurnNs          float64 `json:"churn_ns"`            // stop a random timer and start another
}

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
func measureTimers(starter timerStarter, n int) *result {
	r := &result{Count: n}
	delays := randomDelays()
	delay := func(i int) time.Duration { return delays[i%len(delays)] }
	startAndStop := func(i int) { starter.start(delay(i)).stop() }
	r.EmptyStartStopNs = medianNs(startAndStop)

	keptHandles := make([]handle, min(n, maxKeptHandles))
	memoryBefore := figures.RuntimeMemory()
	liveBefore := figures.LiveHeap()
	startTime := time.Now()
	var wg sync.WaitGroup
	nprocs := runtime.GOMAXPROCS(0)
	for g := range nprocs {
		wg.Go(func() {
			// keptHandles[first:end] is this goroutine's part. Its handles are spread evenly
			// over the goroutine's timers.
			first, end := len(keptHandles)*g/nprocs, len(keptHandles)*(g+1)/nprocs
			numOwnTimers := n*(g+1)/nprocs - n*g/nprocs
			for i, k := 0, first; i < numOwnTimers; i++ {
				h := starter.start(delay(i))
				if k < end && i >= (k-first)*numOwnTimers/(end-first) {
					keptHandles[k] = h
					k++
				}
			}
		})
	}
	wg.Wait()
	r.InsertTime = time.Since(startTime)
	r.HeapBytes = figures.LiveHeap() - liveBefore
	r.TotalBytes = figures.RuntimeMemory() - memoryBefore

	r.FullGCTime = medianGCTime()
	r.StartStopNs = medianNs(startAndStop)
	rng := rand.New(rand.NewPCG(1, 2))
	r.ChurnNs = medianNs(func(i int) {
		k := rng.IntN(len(keptHandles))
		if !keptHandles[k].stop() {
			panic("tickless: a timer hours away was not pending")
		}
		keptHandles[k] = starter.start(delay(i))
	})
	runtime.KeepAlive(starter)
	return r
}

// randomDelays returns random delays. They are few, so that they fit into the CPU's
// cache.
func randomDelays() []time.Duration {
	rng := rand.New(rand.NewPCG(3, 4))
	delays := make([]time.Duration, 1<<12)
	for i := range delays {
		delays[i] = minDelay + time.Duration(rng.Int64N(int64(maxDelay-minDelay)))
	}
	return delays
}

// medianNs returns the median cost of op, in nanoseconds.
func medianNs(op func(i int)) float64 {
	var nsPerOp []float64
	for range numRounds {
		begin := time.Now()
		for i := range opsPerRound {
			op(i)
		}
		nsPerOp = append(nsPerOp, float64(time.Since(begin).Nanoseconds())/opsPerRound)
	}
	slices.Sort(nsPerOp)
	return nsPerOp[len(nsPerOp)/2]
}

// medianGCTime returns the median duration of a garbage collection.
func medianGCTime() time.Duration {
	var gcTimes []time.Duration
	for range 3 {
		begin := time.Now()
		runtime.GC()
		gcTimes = append(gcTimes, time.Since(begin))
	}
	slices.Sort(gcTimes)
	return gcTimes[len(gcTimes)/2]
}
