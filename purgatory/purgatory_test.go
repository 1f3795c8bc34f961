package purgatory_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const never = time.Duration(math.MaxInt64)

// An op is an operation that counts what happens to it. It is complete when
// ready is set, unless try says otherwise.
type op struct {
	purgatory.Delayed[string]
	name  string
	ready atomic.Bool

	try          func() bool
	onComplete   func()
	onExpiration func()

	asked, completed, expired atomic.Int32
}

func (o *op) TryComplete() bool {
	o.asked.Inc()
	if o.try != nil {
		return o.try()
	}
	return o.ready.Load()
}

func (o *op) OnComplete() {
	o.completed.Inc()
	if o.onComplete != nil {
		o.onComplete()
	}
}

func (o *op) OnExpiration() {
	o.expired.Inc()
	if o.onExpiration != nil {
		o.onExpiration()
	}
}

// virtual returns a Purgatory on a Scheduler on a virtual clock.
func virtual(t testing.TB, opts ...purgatory.Option) (*purgatory.Purgatory[string], *timer.Scheduler, *timertest.Clock) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk), timer.WithTick(time.Millisecond))
	p := purgatory.New[string](s, opts...)
	t.Cleanup(func() {
		p.Shutdown(context.Background())
		s.Close()
	})
	return p, s, clk
}

// realTime returns a Purgatory on the system's clock.
func realTime(t testing.TB, opts ...purgatory.Option) (*purgatory.Purgatory[string], *timer.Scheduler) {
	s := timer.New()
	p := purgatory.New[string](s, opts...)
	t.Cleanup(func() {
		p.Shutdown(context.Background())
		require.NoError(t, s.Shutdown(context.Background()))
	})
	return p, s
}

// watch gives an operation that is not complete yet.
func watch(t testing.TB, p *purgatory.Purgatory[string], o *op, timeout time.Duration, keys ...string) *op {
	t.Helper()
	done, err := p.TryCompleteElseWatch(o, timeout, keys...)
	require.NoError(t, err)
	require.False(t, done)
	return o
}

// empty requires that nothing is left of any operation.
func empty(t testing.TB, p *purgatory.Purgatory[string], s *timer.Scheduler) {
	t.Helper()
	st := p.Stats()
	require.Zero(t, st.Delayed, "delayed")
	require.Zero(t, st.Watched, "watched")
	require.Zero(t, st.Keys, "keys")
	require.Zero(t, s.Len(), "timers")
	balanced(t, st)
}

func balanced(t testing.TB, st purgatory.Stats) {
	t.Helper()
	require.Equal(t, st.Entered, st.Completed+st.Expired+st.Cancelled+st.HandedBack+uint64(st.Delayed), "%+v", st)
}

func keysUpTo(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
	}
	return keys
}

// Kafka's testRequestSatisfaction.
func TestCheckAndComplete_RequestSatisfaction(t *testing.T) {
	p, s, _ := virtual(t)
	require.Zero(t, p.CheckAndComplete("test1"), "nothing waits")
	r1 := watch(t, p, new(op), time.Hour, "test1")
	require.Zero(t, p.CheckAndComplete("test1"))
	r2 := watch(t, p, new(op), time.Hour, "test2")
	require.Zero(t, p.CheckAndComplete("test2"))
	r1.ready.Store(true)
	require.Equal(t, 1, p.CheckAndComplete("test1"))
	require.Zero(t, p.CheckAndComplete("test1"))
	r2.ready.Store(true)
	require.Equal(t, 1, p.CheckAndComplete("test2"))
	require.Zero(t, p.CheckAndComplete("test2"))
	for _, o := range []*op{r1, r2} {
		require.True(t, o.IsCompleted())
		require.EqualValues(t, 1, o.completed.Load())
		require.Zero(t, o.expired.Load())
	}
	empty(t, p, s)
}

// Kafka's testRequestExpiry: 20 ms expire after at least 20, 200 s stay.
func TestPurgatory_RequestExpiry(t *testing.T) {
	p, s, clk := virtual(t)
	r1 := watch(t, p, new(op), 20*time.Millisecond, "test1")
	r2 := watch(t, p, new(op), 200*time.Second, "test2")
	clk.Advance(20*time.Millisecond - 1)
	require.False(t, r1.IsCompleted(), "early")
	clk.Advance(1)
	require.True(t, r1.IsCompleted())
	require.EqualValues(t, 1, r1.completed.Load())
	require.EqualValues(t, 1, r1.expired.Load())
	require.False(t, r2.IsCompleted())
	require.Equal(t, 1, p.Len())
	require.True(t, r2.ForceComplete())
	clk.Advance(time.Hour)
	require.Zero(t, r2.expired.Load(), "expired after its completion")
	empty(t, p, s)
	require.EqualValues(t, 1, p.Stats().Expired)
}

// Kafka's testRequestPurge, but with nothing to purge: KAFKA-664 and KAFKA-19389
// (operations kept in the lists of their other keys until brokers ran out of
// memory), KAFKA-1616 (gauges that drift).
func TestPurgatory_CompletionLeavesAllKeysAtOnce(t *testing.T) {
	p, s, clk := virtual(t)
	r1 := watch(t, p, new(op), time.Hour, "1")
	r2 := watch(t, p, new(op), time.Hour, "1", "2")
	r3 := watch(t, p, new(op), time.Minute, "1", "2", "3")
	gauges := func(delayed, watched, keys int) {
		t.Helper()
		require.Equal(t, delayed, p.Len(), "delayed")
		require.Equal(t, watched, p.Watched(), "watched")
		require.Equal(t, keys, p.Stats().Keys, "keys")
		require.Equal(t, delayed, s.Len(), "timers: KAFKA-16663")
	}
	gauges(3, 6, 3)
	r2.ready.Store(true)
	require.Equal(t, 1, p.CheckAndComplete("2")) // leaves "1" too
	gauges(2, 4, 3)
	clk.Advance(time.Minute) // r3 expires
	require.EqualValues(t, 1, r3.expired.Load())
	gauges(1, 1, 1)
	require.True(t, r1.ForceComplete())
	gauges(0, 0, 0)
	empty(t, p, s)
}

// Kafka's shouldCancelForKeyReturningCancelledOperations, where the third key
// is shared: what was cancelled leaves the lists of its other keys as well.
func TestCancelForKey_ReturnsTheOperationsOfTheKey(t *testing.T) {
	p, s, clk := virtual(t)
	a := watch(t, p, new(op), 10*time.Second, "key")
	b := watch(t, p, new(op), 10*time.Second, "key", "other")
	c := watch(t, p, new(op), 10*time.Second, "key2", "other")
	require.Equal(t, []purgatory.Operation[string]{a, b}, p.CancelForKey("key"))
	require.Equal(t, 1, p.Len())
	require.Equal(t, 2, p.Watched())
	require.Equal(t, 1, s.Len(), "timers")
	require.Nil(t, p.CancelForKey("key"))
	require.Nil(t, p.CancelForKey("nobody's"))

	clk.Advance(time.Hour)
	require.EqualValues(t, 1, c.expired.Load())
	for _, o := range []*op{a, b} {
		require.False(t, o.IsCompleted())
		require.Zero(t, o.completed.Load()+o.expired.Load(), "a callback of a cancelled operation ran")
		// It is the caller's now, who may complete it.
		require.True(t, o.ForceComplete())
		require.False(t, o.ForceComplete())
		require.EqualValues(t, 1, o.completed.Load())
	}
	empty(t, p, s)
}

func TestCancelForKey_OperationsMayBeGivenAgain(t *testing.T) {
	p, s, clk := virtual(t)
	a := watch(t, p, new(op), 10*time.Second, "key", "other")
	require.Len(t, p.CancelForKey("other"), 1)
	clk.Advance(8 * time.Second)
	watch(t, p, a, 10*time.Second, "new")
	require.Zero(t, p.CheckAndComplete("key"))
	clk.Advance(9 * time.Second) // past the first timeout
	require.False(t, a.IsCompleted())
	clk.Advance(time.Second)
	require.EqualValues(t, 1, a.expired.Load())
	empty(t, p, s)
}

// Kafka's testTryCompleteWithMultipleThreads, of KAFKA-6653: a tryLock that
// finds the lock busy loses the completion. The last of the attempts makes the
// operation complete; however they overlap, none is left.
func TestCheckAndComplete_ManyThreads(t *testing.T) {
	const ops, threads, attempts = 100, 20, 20
	p, s := realTime(t)
	all := make([]*op, ops)
	left := make([]atomic.Int32, ops)
	for i := range all {
		o := new(op)
		o.try = func() bool {
			ready := o.ready.Load()
			time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
			return ready
		}
		all[i] = watch(t, p, o, time.Minute, fmt.Sprint("key", i))
		left[i].Store(attempts)
	}
	work := make(chan int, ops*attempts)
	for range attempts {
		for _, i := range rand.Perm(ops) {
			work <- i
		}
	}
	close(work)
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			for i := range work {
				if left[i].Dec() == 0 {
					all[i].ready.Store(true)
				}
				p.CheckAndComplete(fmt.Sprint("key", i))
			}
		})
	}
	wg.Wait()
	for _, o := range all {
		require.True(t, o.IsCompleted())
		require.EqualValues(t, 1, o.completed.Load())
	}
	empty(t, p, s)
}

// KAFKA-1952: with many keys, TryComplete ran once for each.
func TestTryCompleteElseWatch_AsksAtMostTwice(t *testing.T) {
	p, s, _ := virtual(t)
	for _, n := range []int{0, 1, 3, 16, 17, 500} {
		o := watch(t, p, new(op), time.Hour, keysUpTo(n)...)
		require.EqualValues(t, 2, o.asked.Load(), "%d keys", n)
		require.Equal(t, n, p.Watched())
		require.True(t, o.ForceComplete())

		o = new(op)
		o.ready.Store(true)
		done, err := p.TryCompleteElseWatch(o, time.Hour, keysUpTo(n)...)
		require.NoError(t, err)
		require.True(t, done)
		require.EqualValues(t, 1, o.asked.Load(), "complete at once")
		require.EqualValues(t, 1, o.completed.Load())
	}
	empty(t, p, s)
	require.EqualValues(t, 6, p.Stats().Entered, "what is complete at once does not enter")
}

// The condition comes true while the operation is being put in the lists: the
// second check sees it, and neither a list nor a timer keeps the operation.
func TestTryCompleteElseWatch_CompletedByTheSecondCheck(t *testing.T) {
	p, s, clk := virtual(t)
	o := new(op)
	o.try = func() bool { return o.asked.Load() == 2 }
	done, err := p.TryCompleteElseWatch(o, time.Second, "a", "b")
	require.NoError(t, err)
	require.True(t, done)
	require.EqualValues(t, 1, o.completed.Load())
	empty(t, p, s)
	require.Zero(t, s.Stats().Started, "a timer")
	clk.Advance(time.Hour)
	require.Zero(t, o.expired.Load())
}

// Whoever else wants to complete the operation while it is being given waits
// until that is over, timer and all: then nothing is left behind.
func TestTryCompleteElseWatch_CompletedMeanwhile(t *testing.T) {
	for name, complete := range map[string]func(*purgatory.Purgatory[string], *op){
		"force": func(_ *purgatory.Purgatory[string], o *op) { o.ForceComplete() },
		"check": func(p *purgatory.Purgatory[string], o *op) {
			o.ready.Store(true)
			p.CheckAndComplete("b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, s, clk := virtual(t)
			o := new(op)
			var wg sync.WaitGroup
			o.try = func() bool {
				ready := o.ready.Load()
				if o.asked.Load() == 2 {
					wg.Go(func() { complete(p, o) })
					time.Sleep(5 * time.Millisecond) // it comes to the lock
				}
				return ready
			}
			watch(t, p, o, time.Second, "a", "b")
			wg.Wait()
			require.True(t, o.IsCompleted())
			require.EqualValues(t, 1, o.completed.Load())
			empty(t, p, s)
			clk.Advance(time.Hour)
			require.Zero(t, o.expired.Load())
		})
	}
}

// KAFKA-8334: an event between the two checks must not be lost, though whoever
// checks the key finds the operation's lock taken.
func TestCheckAndComplete_WaitsForAStartUnderWay(t *testing.T) {
	p, s, _ := virtual(t)
	o := new(op)
	checked := make(chan int)
	o.try = func() bool {
		ready := o.ready.Load()
		if o.asked.Load() == 2 { // it is in the list, and the second check has looked
			o.ready.Store(true)
			go func() { checked <- p.CheckAndComplete("a") }()
			select {
			case <-checked:
				t.Error("the check did not wait for the lock")
			case <-time.After(10 * time.Millisecond):
			}
		}
		return ready
	}
	watch(t, p, o, time.Hour, "a")
	require.Equal(t, 1, <-checked)
	require.EqualValues(t, 1, o.completed.Load())
	empty(t, p, s)
}

// KAFKA-6653: a check that comes while another is looking must not pass by.
func TestCheckAndComplete_WaitsForAnotherCheck(t *testing.T) {
	p, s, _ := virtual(t)
	o := watch(t, p, new(op), time.Hour, "a", "b")
	looked, proceed := make(chan bool), make(chan bool)
	var once sync.Once
	o.try = func() bool {
		ready := o.ready.Load()
		once.Do(func() {
			looked <- true
			<-proceed
		})
		return ready
	}
	first, second := make(chan int), make(chan int)
	go func() { first <- p.CheckAndComplete("a") }()
	<-looked // and it saw nothing
	o.ready.Store(true)
	go func() { second <- p.CheckAndComplete("b") }()
	time.Sleep(5 * time.Millisecond)
	close(proceed)
	require.Equal(t, 0, <-first)
	require.Equal(t, 1, <-second)
	require.EqualValues(t, 1, o.completed.Load())
	empty(t, p, s)
}

// KAFKA-19312: expiry takes the same lock as the checks, so a check that is
// looking decides first.
func TestPurgatory_ExpiryWaitsForACheck(t *testing.T) {
	for _, answer := range []bool{true, false} {
		p, s, clk := virtual(t)
		o := watch(t, p, new(op), time.Second, "a")
		var timeout sync.WaitGroup
		o.try = func() bool {
			timeout.Go(func() { clk.Advance(time.Second) }) // runs expired operations' callbacks
			time.Sleep(10 * time.Millisecond)               // it comes to the lock
			if o.IsCompleted() || o.completed.Load() != 0 {
				t.Error("expired while TryComplete ran")
			}
			return answer
		}
		done := p.CheckAndComplete("a")
		timeout.Wait()
		if answer {
			require.Equal(t, 1, done)
			require.Zero(t, o.expired.Load())
		} else {
			require.Zero(t, done)
			require.EqualValues(t, 1, o.expired.Load())
		}
		require.EqualValues(t, 1, o.completed.Load())
		empty(t, p, s)
	}
}

func TestPurgatory_OnCompleteBeforeOnExpiration(t *testing.T) {
	p, s, clk := virtual(t)
	var calls []string
	o := new(op)
	o.onComplete = func() {
		require.True(t, o.IsCompleted())
		calls = append(calls, "complete")
	}
	o.onExpiration = func() { calls = append(calls, "expiration") }
	watch(t, p, o, time.Second, "a")
	clk.Advance(time.Second)
	require.Equal(t, []string{"complete", "expiration"}, calls)
	empty(t, p, s)
}

// Only one of all that race completes an operation, and only it is told so.
func TestPurgatory_TrueOnlyForTheOneThatCompleted(t *testing.T) {
	p, s := realTime(t)
	for round := range 2000 {
		o := new(op)
		o.ready.Store(round%2 == 0)
		var trues atomic.Int32
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if o.ForceComplete() {
					trues.Inc()
				}
			})
			wg.Go(func() {
				o.ready.Store(true)
				trues.Add(int32(p.CheckAndComplete("a")))
			})
		}
		wg.Go(func() {
			timeout := time.Duration(rand.IntN(200)) * time.Microsecond
			done, err := p.TryCompleteElseWatch(o, timeout, "a", "b")
			require.NoError(t, err)
			if done {
				trues.Inc()
			}
		})
		wg.Wait()
		require.Eventually(t, func() bool { return o.completed.Load() == 1 }, 10*time.Second, 10*time.Microsecond)
		if n := trues.Load(); n != 1 {
			// Nobody's: then the timeout had it.
			require.Zero(t, n)
			require.Eventually(t, func() bool { return o.expired.Load() == 1 }, 10*time.Second, 10*time.Microsecond)
		}
	}
	require.NoError(t, s.Shutdown(context.Background()))
	empty(t, p, s)
}

// No TryComplete starts once the operation is complete, whoever still holds it.
func TestPurgatory_NoTryCompleteAfterCompletion(t *testing.T) {
	p, s := realTime(t)
	for range 500 {
		o := new(op)
		o.try = func() bool {
			if o.IsCompleted() {
				t.Error("TryComplete of a completed operation")
			}
			return o.ready.Load()
		}
		watch(t, p, o, time.Minute, "a", "b", "c")
		var wg sync.WaitGroup
		for _, key := range []string{"a", "b", "c"} {
			wg.Go(func() { p.CheckAndComplete(key) })
		}
		wg.Go(func() { o.ForceComplete() })
		wg.Wait()
		done, err := p.TryCompleteElseWatch(o, time.Minute, "a")
		require.NoError(t, err)
		require.False(t, done)
		require.EqualValues(t, 1, o.completed.Load())
	}
	empty(t, p, s)
}

// KAFKA-3994, KAFKA-5970, KAFKA-6042: deadlocks of callbacks that come back.
func TestPurgatory_CallbacksMayCallAnything(t *testing.T) {
	p, s, clk := virtual(t)
	again := func(self *op) func() {
		return func() {
			require.False(t, self.ForceComplete())
			p.CheckAndComplete("a")
			p.CheckAndComplete("b")
			p.Len()
			p.Watched()
			done, err := p.TryCompleteElseWatch(self, time.Hour, "a")
			require.NoError(t, err)
			require.False(t, done)
			next := new(op)
			watch(t, p, next, time.Hour, "a", "b")
			cancelled := p.CancelForKey("b")
			require.Contains(t, cancelled, purgatory.Operation[string](next))
		}
	}
	for name, complete := range map[string]func(*op){
		"check":  func(o *op) { o.ready.Store(true); require.Equal(t, 1, p.CheckAndComplete("a")) },
		"force":  func(o *op) { require.True(t, o.ForceComplete()) },
		"expire": func(*op) { clk.Advance(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			o := new(op)
			o.onComplete, o.onExpiration = again(o), again(o)
			watch(t, p, o, time.Second, "a", "b")
			complete(o)
			require.EqualValues(t, 1, o.completed.Load())
			empty(t, p, s)
		})
	}
	t.Run("start", func(t *testing.T) {
		o := new(op)
		o.onComplete = again(o)
		o.ready.Store(true)
		done, err := p.TryCompleteElseWatch(o, time.Second, "a", "b")
		require.NoError(t, err)
		require.True(t, done)
		empty(t, p, s)
	})
}

// One completion sets off the next, a thousand deep, on the same key.
func TestCheckAndComplete_Cascade(t *testing.T) {
	p, s, _ := virtual(t)
	const n = 1000
	ops := make([]*op, n)
	for i := range ops {
		ops[i] = watch(t, p, new(op), time.Hour, "a", fmt.Sprint("own", i))
	}
	for i := range n - 1 {
		ops[i].onComplete = func() {
			ops[i+1].ready.Store(true)
			require.Equal(t, 1, p.CheckAndComplete("a"))
		}
	}
	ops[0].ready.Store(true)
	require.Equal(t, 1, p.CheckAndComplete("a"), "the others were completed by the calls inside")
	for _, o := range ops {
		require.EqualValues(t, 1, o.completed.Load())
	}
	empty(t, p, s)
}

func TestCheckAndComplete_InOrderOfArrival(t *testing.T) {
	p, s, _ := virtual(t)
	var order []string
	for i := range 20 {
		o := &op{name: fmt.Sprint(i)}
		o.onComplete = func() { order = append(order, o.name) }
		watch(t, p, o, time.Hour, "a", fmt.Sprint("own", i))
		o.ready.Store(i%3 != 0)
	}
	p.CheckAndComplete("own7")
	require.Equal(t, 12, p.CheckAndComplete("a"))
	require.Equal(t, []string{"7", "1", "2", "4", "5", "8", "10", "11", "13", "14", "16", "17", "19"}, order)
	require.Equal(t, 7, p.Len())
	require.Len(t, p.CancelForKey("a"), 7)
	empty(t, p, s)
}

// KAFKA-2160: keys whose operations have gone stayed in the map for ever. Go's
// maps do not shrink by themselves either.
func TestPurgatory_KeysWithoutWatchersTakeNoMemory(t *testing.T) {
	p, s, _ := virtual(t)
	round := func(n int) {
		ops := make([]*op, n)
		for i := range ops {
			ops[i] = watch(t, p, new(op), time.Hour, fmt.Sprint("a", i), fmt.Sprint("b", i))
		}
		require.Equal(t, 2*n, p.Stats().Keys)
		for i, o := range ops {
			if i%2 == 0 {
				o.ForceComplete()
			} else {
				p.CancelForKey(fmt.Sprint("a", i))
			}
		}
		empty(t, p, s)
	}
	round(1000) // what the scheduler keeps as a spare
	before := heap()
	round(20_000)
	require.Less(t, heap()-before, 300_000, "bytes left of 40,000 keys")
	runtime.KeepAlive(p)
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// KAFKA-2253: an operation that comes to a key just as the last one leaves it
// must not end up in a list that nobody finds.
func TestPurgatory_RemovalRacesWithANewWatch(t *testing.T) {
	p, s := realTime(t)
	const n = 20_000
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range n / 4 {
				o := new(op)
				done, err := p.TryCompleteElseWatch(o, time.Minute, "a", "b")
				require.NoError(t, err)
				require.False(t, done)
				o.ready.Store(true)
				key := "a"
				if rand.IntN(2) == 0 {
					key = "b"
				}
				p.CheckAndComplete(key)
				if !o.IsCompleted() {
					t.Error("a check did not find an operation that waits")
					return
				}
			}
		})
	}
	wg.Wait()
	empty(t, p, s)
}

// KAFKA-664: nothing that was completed, expired or cancelled stays reachable.
func TestPurgatory_KeepsNothingAlive(t *testing.T) {
	p, s, clk := virtual(t)
	stays := watch(t, p, new(op), never, "a", "b")
	give := func(end func(*op)) weak.Pointer[op] {
		o := watch(t, p, new(op), time.Minute, "a", "b", "c")
		end(o)
		return weak.Make(o)
	}
	gone := map[string]weak.Pointer[op]{
		"checked":   give(func(o *op) { o.ready.Store(true); p.CheckAndComplete("b") }),
		"forced":    give(func(o *op) { o.ForceComplete() }),
		"expired":   give(func(*op) { clk.Advance(time.Minute) }),
		"cancelled": give(func(*op) { p.CancelForKey("c") }),
	}
	require.Equal(t, 1, p.Len())
	runtime.GC() // one only: a sync.Pool would keep things for that long
	for name, o := range gone {
		require.Nil(t, o.Value(), name)
	}
	require.False(t, stays.IsCompleted())
	runtime.KeepAlive(s)
}

type pointerOp struct{ purgatory.Delayed[*[64]byte] }

func (*pointerOp) TryComplete() bool { return false }
func (*pointerOp) OnComplete()       {}
func (*pointerOp) OnExpiration()     {}

// Nor does a key that nobody waits for any more.
func TestPurgatory_KeepsNoKeyAlive(t *testing.T) {
	s := timer.New(timer.WithClock(timertest.NewClock(epoch)))
	defer s.Close()
	p := purgatory.New[*[64]byte](s)
	give := func() weak.Pointer[[64]byte] {
		key, o := new([64]byte), new(pointerOp)
		p.TryCompleteElseWatch(o, time.Hour, key)
		require.Equal(t, 1, p.Watched())
		o.ForceComplete()
		return weak.Make(key)
	}
	key := give()
	runtime.GC()
	require.Nil(t, key.Value())
	runtime.KeepAlive(p)
}

func TestTryCompleteElseWatch_KeysGivenTwiceCountOnce(t *testing.T) {
	p, s, _ := virtual(t)
	o := watch(t, p, new(op), time.Hour, "a", "b", "a", "a", "b", "c")
	require.Equal(t, 3, p.Watched())
	require.Equal(t, 3, p.Stats().Keys)
	before := o.asked.Load()
	require.Zero(t, p.CheckAndComplete("a"))
	require.Equal(t, before+1, o.asked.Load())
	require.True(t, o.ForceComplete())
	empty(t, p, s)

	for _, n := range []int{3, 100} {
		keys := append(append(keysUpTo(n/2), keysUpTo(n/2)...), keysUpTo(n)...)
		given := slices.Clone(keys)
		o = watch(t, p, new(op), time.Hour, keys...)
		require.Equal(t, given, keys, "the caller's slice was changed")
		require.Equal(t, n, p.Watched())
		require.True(t, o.ForceComplete())
		empty(t, p, s)
	}
}

func TestTryCompleteElseWatch_WithoutKeys(t *testing.T) {
	p, s, clk := virtual(t)
	a := watch(t, p, new(op), time.Second)
	b := watch(t, p, new(op), time.Hour)
	c := watch(t, p, new(op), time.Hour)
	require.Equal(t, 3, p.Len())
	require.Zero(t, p.Watched())
	clk.Advance(time.Second)
	require.EqualValues(t, 1, a.expired.Load())
	require.True(t, b.ForceComplete())
	pending, err := p.Shutdown(context.Background())
	require.NoError(t, err)
	require.Equal(t, []purgatory.Operation[string]{c}, pending)
	empty(t, p, s)
}

func TestTryCompleteElseWatch_TimeoutOfZeroOrLess(t *testing.T) {
	p, s, clk := virtual(t)
	for _, timeout := range []time.Duration{0, -1, math.MinInt64} {
		o := watch(t, p, new(op), timeout, "a")
		require.EqualValues(t, 2, o.asked.Load())
		require.Zero(t, o.completed.Load(), "inside the call")
		clk.Advance(0)
		require.EqualValues(t, 1, o.expired.Load())

		o = new(op) // complete is complete, however short the timeout
		o.ready.Store(true)
		done, err := p.TryCompleteElseWatch(o, timeout, "a")
		require.NoError(t, err)
		require.True(t, done)
		require.Zero(t, o.expired.Load())
	}
	empty(t, p, s)
}

func TestTryCompleteElseWatch_TheLongestTimeout(t *testing.T) {
	p, _, clk := virtual(t)
	o := watch(t, p, new(op), never, "a")
	clk.Advance(200 * 365 * 24 * time.Hour)
	require.False(t, o.IsCompleted())
	require.Equal(t, 1, p.Len())
}

// Never without a timeout: if there is no timer to be had, nothing is watched.
func TestTryCompleteElseWatch_NoTimerToBeHad(t *testing.T) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk), timer.WithMaxPending(1))
	p := purgatory.New[string](s)
	first := watch(t, p, new(op), time.Hour, "a")

	o := new(op)
	done, err := p.TryCompleteElseWatch(o, time.Hour, "a", "b")
	require.ErrorIs(t, err, timer.ErrTooManyPending)
	require.False(t, done)
	require.Equal(t, 1, p.Len())
	require.Equal(t, 1, p.Watched())
	require.False(t, o.IsCompleted())
	require.True(t, first.ForceComplete())
	watch(t, p, o, time.Hour, "b") // there is room now
	require.True(t, o.ForceComplete())
	empty(t, p, s)

	s.Close()
	o = new(op)
	done, err = p.TryCompleteElseWatch(o, time.Hour, "a", "b")
	require.ErrorIs(t, err, timer.ErrClosed)
	require.False(t, done)
	require.Zero(t, o.completed.Load()+o.expired.Load())
	empty(t, p, s)
	o.ready.Store(true) // what needs no timer goes on
	done, err = p.TryCompleteElseWatch(o, time.Hour, "a", "b")
	require.NoError(t, err)
	require.True(t, done)
}

func TestForceComplete_BeforeItWasGiven(t *testing.T) {
	p, s, _ := virtual(t)
	o := new(op)
	require.False(t, o.IsCompleted())
	require.True(t, o.ForceComplete())
	require.True(t, o.IsCompleted())
	require.False(t, o.ForceComplete())
	require.Zero(t, o.completed.Load(), "nobody knows yet what to run")
	for range 2 {
		done, err := p.TryCompleteElseWatch(o, time.Hour, "a")
		require.NoError(t, err)
		require.False(t, done, "it was ForceComplete that completed it")
		require.EqualValues(t, 1, o.completed.Load())
		require.Zero(t, o.asked.Load())
	}
	empty(t, p, s)
}

func TestTryCompleteElseWatch_OperationThatWaitsPanics(t *testing.T) {
	p, s, _ := virtual(t)
	o := watch(t, p, new(op), time.Hour, "a")
	require.PanicsWithValue(t, "purgatory: the operation is waiting already",
		func() { p.TryCompleteElseWatch(o, time.Hour, "b") })
	require.Equal(t, 1, p.Len(), "it waits on")
	require.True(t, o.ForceComplete())
	empty(t, p, s)
}

// An operation that was taken out after its timer had fired, and given again,
// has nothing to do with the first timeout, whose callback is still to run.
func TestPurgatory_StaleTimeout(t *testing.T) {
	var queued []func()
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(queue{&queued}))
	defer s.Close()
	p := purgatory.New[string](s)
	o := watch(t, p, new(op), time.Second, "a")
	clk.Advance(time.Second)
	require.Len(t, queued, 1)
	require.Len(t, p.CancelForKey("a"), 1)
	watch(t, p, o, time.Hour, "a")
	queued[0]()
	require.False(t, o.IsCompleted(), "expired by the first timeout")
	require.Equal(t, 1, p.Len())
	clk.Advance(time.Hour)
	queued[1]()
	require.EqualValues(t, 1, o.expired.Load())
	empty(t, p, s)
}

// queue is an executor that runs nothing by itself.
type queue struct{ fs *[]func() }

func (q queue) Submit(f func()) error {
	*q.fs = append(*q.fs, f)
	return nil
}

func (q queue) SubmitBatch(fs []func()) (int, error) {
	*q.fs = append(*q.fs, fs...)
	return len(fs), nil
}

func (queue) Shutdown(context.Context) error { return nil }

func TestNew_RefusesBadOptions(t *testing.T) {
	for _, n := range []int{0, -1, 3, 6, math.MinInt} {
		require.PanicsWithValue(t, fmt.Sprintf("purgatory: WithShards: the number of shards must be a power of two, it is %d", n),
			func() { purgatory.WithShards(n) })
	}
	require.PanicsWithValue(t, "purgatory: WithPanicHandler with a nil func", func() { purgatory.WithPanicHandler(nil) })
}

func TestPurgatory_OneShard(t *testing.T) {
	p, s, _ := virtual(t, purgatory.WithShards(1))
	o := watch(t, p, new(op), time.Hour, "a", "b", "c")
	o.ready.Store(true)
	require.Equal(t, 1, p.CheckAndComplete("c"))
	empty(t, p, s)
}

// Any comparable type is a key.
type partition struct {
	topic string
	n     int
}

type partitionOp struct{ purgatory.Delayed[partition] }

func (*partitionOp) TryComplete() bool { return false }
func (*partitionOp) OnComplete()       {}
func (*partitionOp) OnExpiration()     {}

func TestPurgatory_StructKeys(t *testing.T) {
	s := timer.New(timer.WithClock(timertest.NewClock(epoch)))
	defer s.Close()
	p := purgatory.New[partition](s)
	o := new(partitionOp)
	p.TryCompleteElseWatch(o, time.Hour, partition{"t", 1}, partition{"t", 2}, partition{"t", 1})
	require.Equal(t, 2, p.Watched())
	require.Len(t, p.CancelForKey(partition{"t", 2}), 1)
	require.Zero(t, p.Watched())
}

type floatOp struct{ purgatory.Delayed[float64] }

func (*floatOp) TryComplete() bool { return false }
func (*floatOp) OnComplete()       {}
func (*floatOp) OnExpiration()     {}

type anyOp struct{ purgatory.Delayed[any] }

func (*anyOp) TryComplete() bool { return false }
func (*anyOp) OnComplete()       {}
func (*anyOp) OnExpiration()     {}

// A key that cannot be found again, or not be hashed, is refused, and leaves
// nothing behind in the lists of the keys before it.
func TestTryCompleteElseWatch_BadKeysPanic(t *testing.T) {
	s := timer.New(timer.WithClock(timertest.NewClock(epoch)))
	defer s.Close()
	fp := purgatory.New[float64](s)
	fo := new(floatOp)
	require.PanicsWithValue(t, "purgatory: a key that is not equal to itself could never be found again",
		func() { fp.TryCompleteElseWatch(fo, time.Hour, 1, 2, math.NaN()) })
	require.Zero(t, fp.Stats())
	_, err := fp.TryCompleteElseWatch(fo, time.Hour, 1, 2)
	require.NoError(t, err)
	require.Zero(t, fp.CheckAndComplete(math.NaN()))
	require.True(t, fo.ForceComplete())

	ap := purgatory.New[any](s)
	ao := new(anyOp)
	require.Panics(t, func() { ap.TryCompleteElseWatch(ao, time.Hour, 1, "b", []int{}) })
	require.Panics(t, func() { ap.CheckAndComplete([]int{}) })
	require.Zero(t, ap.Stats())
	_, err = ap.TryCompleteElseWatch(ao, time.Hour, 1, "b")
	require.NoError(t, err)
	require.Equal(t, 2, ap.Watched())
	require.True(t, ao.ForceComplete())
	require.Zero(t, s.Len())
}

// All of it works in a bubble.
func TestPurgatory_InABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		p := purgatory.New[string](s)
		begin := time.Now()
		var after time.Duration
		o := &op{onComplete: func() { after = time.Since(begin) }}
		watch(t, p, o, 30*time.Second, "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.EqualValues(t, 1, o.expired.Load())
		require.Equal(t, 30*time.Second, after)
		pending, err := p.Shutdown(t.Context())
		require.NoError(t, err)
		require.Empty(t, pending)
		require.NoError(t, s.Shutdown(t.Context()))
	})
}
