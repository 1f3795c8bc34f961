package timer

import (
	"cmp"
	"context"
	"runtime/trace"
	"slices"
	"sync"
	"time"
)

// slowCallback is from which duration on a callback is kept in Recent.
const slowCallback = 10 * time.Millisecond

// WithCallbackTimes measures how long callbacks wait for the executor and how long they
// run, for [Stats.Callbacks] and [Recent.Slow]. It reads the clock twice and makes an
// object for each callback. The default is not to.
func WithCallbackTimes() Option {
	return option(func(c *config) { c.callbackTimes = true })
}

// CallbackStats are what [WithCallbackTimes] has measured.
type CallbackStats struct {
	// Waited is how long callbacks waited in the executor before they began, Ran how
	// long they took. Those that still run are not in Ran yet.
	Waited, Ran Histogram
	// Running is the number of callbacks that run.
	Running int
}

// A SlowCallback is a callback that took long, or that runs for long by now.
type SlowCallback struct {
	// Began is when it began, after it had waited for the executor, for Waited.
	Began  time.Time
	Waited time.Duration
	// Took is how long it ran, or has been running.
	Took    time.Duration
	Running bool

	pc uintptr
}

// Function returns the name of the callback's function.
func (c SlowCallback) Function() string { return functionName(c.pc) }

// callbackTimes measures callbacks.
type callbackTimes struct {
	now  func() int64
	look func() int64 // now for who only reads
	at   func(int64) time.Time

	mu      sync.Mutex
	stats   CallbackStats
	running map[*callbackRun]struct{}
	// names has the code of what a timer of a kind of its own will call, by the function
	// that stands for it on the way to the executor.
	names map[payload]uintptr
	// mostRunning and mostNames are how many there were since the maps were made.
	mostRunning, mostNames int
	slow                   latest[SlowCallback]
}

type callbackRun struct {
	pc           uintptr
	handed, from int64
}

func newCallbackTimes(s *Scheduler) *callbackTimes {
	return &callbackTimes{now: s.now, look: s.look, at: s.at, running: make(map[*callbackRun]struct{}), names: make(map[payload]uintptr)}
}

// name notes what f is called for, which was made for a timer of that kind.
func (t *callbackTimes) name(f func(), p payload, tag uint8) {
	if t == nil || tag == tagFunc || f == nil {
		return
	}
	if _, pc := p.describe(tag); pc != 0 {
		t.mu.Lock()
		t.names[funcPayload(f)] = pc
		t.mostNames = max(t.mostNames, len(t.names))
		t.mu.Unlock()
	}
}

// codeOf returns the code of what f is called for. It knows that once for each name.
func (t *callbackTimes) codeOf(f func()) uintptr {
	if t == nil {
		return codeOf(f)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if pc, ok := t.names[funcPayload(f)]; ok {
		delete(t.names, funcPayload(f))
		t.names, t.mostNames = afterPeak(t.names, t.mostNames)
		return pc
	}
	return codeOf(f)
}

// measured returns f, which is called for the code at pc, with its measuring around it.
// It is called when the timer has fired.
func (t *callbackTimes) measured(f func(), pc uintptr) func() {
	r := &callbackRun{pc: pc, handed: t.now()}
	return func() {
		t.begin(r)
		defer t.end(r)
		f()
	}
}

func (t *callbackTimes) begin(r *callbackRun) {
	r.from = t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Waited.Record(time.Duration(r.from - r.handed))
	t.running[r] = struct{}{}
	t.mostRunning = max(t.mostRunning, len(t.running))
}

func (t *callbackTimes) end(r *callbackRun) {
	to := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Ran.Record(time.Duration(to - r.from))
	delete(t.running, r)
	t.running, t.mostRunning = afterPeak(t.running, t.mostRunning)
	if time.Duration(to-r.from) >= slowCallback {
		t.slow.add(t.slowCallback(r, to, false))
	}
}

// afterPeak returns m, or another map if it is empty and once had many entries: maps do
// not shrink.
func afterPeak[K comparable, V any](m map[K]V, most int) (map[K]V, int) {
	if len(m) > 0 || most < 1024 {
		return m, most
	}
	return make(map[K]V), 0
}

func (t *callbackTimes) slowCallback(r *callbackRun, to int64, running bool) SlowCallback {
	return SlowCallback{
		Began:  t.at(r.from),
		Waited: time.Duration(r.from - r.handed), Took: time.Duration(to - r.from),
		Running: running, pc: r.pc,
	}
}

// slowOnes returns the slow callbacks, in the order in which they began: the last of
// those that have ended, and the first of those that run.
func (t *callbackTimes) slowOnes() []SlowCallback {
	slow := t.slow.get()
	now := t.look()
	var running []SlowCallback
	t.mu.Lock()
	for r := range t.running {
		if time.Duration(now-r.from) >= slowCallback {
			running = append(running, t.slowCallback(r, now, true))
		}
	}
	t.mu.Unlock()
	begun := func(a, b SlowCallback) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.pc, b.pc)) }
	slices.SortFunc(running, begun)
	slow = append(slow, running[:min(len(running), recentKept)]...)
	slices.SortFunc(slow, begun)
	return slow
}

func (t *callbackTimes) read() *CallbackStats {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.stats
	st.Running = len(t.running)
	return &st
}

// traced returns f as a task with a region of its own, for an execution trace. name is
// the Scheduler's, and pc the code of what f is called for.
func traced(f func(), pc uintptr, name string) func() {
	// The task begins where the timer fires, the region where the callback does: what
	// is in between is the wait for the executor.
	ctx, task := trace.NewTask(context.Background(), "timer")
	trace.Log(ctx, "scheduler", name)
	trace.Log(ctx, "function", functionName(pc))
	return func() {
		defer task.End()
		defer trace.StartRegion(ctx, "timer.callback").End()
		f()
	}
}
