package purgatory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/purgatory"
)

// These are tests from Kafka, and tests of bugs that Kafka's purgatory has had, named
// after Kafka's issues.

// Kafka's testRequestSatisfaction.
func TestKafka_RequestSatisfaction(t *testing.T) {
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

// Kafka's testRequestExpiry. An operation with a timeout of 20 ms expires after 20 ms.
// An operation with a timeout of 200 s still waits.
func TestKafka_RequestExpiry(t *testing.T) {
	p, s, clk := virtual(t)
	r1 := watch(t, p, new(op), 20*time.Millisecond, "test1")
	r2 := watch(t, p, new(op), 200*time.Second, "test2")
	clk.Advance(20*time.Millisecond - 1)
	require.False(t, r1.IsCompleted(), "expired early")
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

// Kafka's testRequestPurge, but without a purge. In Kafka, completed operations stayed
// in the lists of their other keys, and filled the memory of brokers (KAFKA-664,
// KAFKA-19389). Gauges drifted (KAFKA-1616).
func TestKafka664And19389And1616_CompletionLeavesAllKeysAtOnce(t *testing.T) {
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

// Kafka's shouldCancelForKeyReturningCancelledOperations, with a third key that the
// operations share. Cancelled operations also leave the lists of their other keys.
func TestKafka_CancelForKey(t *testing.T) {
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
		// The caller of CancelForKey may complete the operation.
		require.True(t, o.ForceComplete())
		require.False(t, o.ForceComplete())
		require.EqualValues(t, 1, o.completed.Load())
	}
	empty(t, p, s)
}

// Kafka's testTryCompleteWithMultipleThreads. In KAFKA-6653, a completion was lost,
// because a check gave up when another check held the lock. Here several threads check
// each operation, and all must be completed.
func TestKafka6653_ManyThreads(t *testing.T) {
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

// KAFKA-1952: for an operation with many keys, tryComplete ran once for each key.
func TestKafka1952_AsksAtMostTwice(t *testing.T) {
	p, s, _ := virtual(t)
	for _, n := range []int{0, 1, 3, 16, 17, 500} {
		o := watch(t, p, new(op), time.Hour, keysUpTo(n)...)
		require.EqualValues(t, 2, o.asked.Load(), "%d keys", n)
		require.Equal(t, n, p.Watched())
		require.True(t, o.ForceComplete())

		o = new(op)
		o.ready.Store(true)
		done, err := p.CompleteOrWatch(o, time.Hour, keysUpTo(n)...)
		require.NoError(t, err)
		require.True(t, done)
		require.EqualValues(t, 1, o.asked.Load(), "complete at once")
		require.EqualValues(t, 1, o.completed.Load())
	}
	empty(t, p, s)
	require.EqualValues(t, 6, p.Stats().Entered, "Entered does not count an operation that is complete when it is added")
}

// KAFKA-8334: a check that finds the operation's lock taken must wait. Otherwise an
// event between the two checks would be lost.
func TestKafka8334_CheckWaitsForAStartUnderWay(t *testing.T) {
	p, s, _ := virtual(t)
	o := new(op)
	checked := make(chan int)
	o.try = func() bool {
		ready := o.ready.Load()
		if o.asked.Load() == 2 { // the operation is in the list, and the second check is running
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

// KAFKA-6653: a check must wait for another running check of the operation, not skip it.
func TestKafka6653_CheckWaitsForAnotherCheck(t *testing.T) {
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
	<-looked // the check has found the condition false
	o.ready.Store(true)
	go func() { second <- p.CheckAndComplete("b") }()
	time.Sleep(5 * time.Millisecond)
	close(proceed)
	require.Equal(t, 0, <-first)
	require.Equal(t, 1, <-second)
	require.EqualValues(t, 1, o.completed.Load())
	empty(t, p, s)
}

// KAFKA-19312: expiry takes the same lock as a check, so it waits for a running check.
func TestKafka19312_ExpiryWaitsForACheck(t *testing.T) {
	for _, answer := range []bool{true, false} {
		p, s, clk := virtual(t)
		o := watch(t, p, new(op), time.Second, "a")
		var timeout sync.WaitGroup
		o.try = func() bool {
			timeout.Go(func() { clk.Advance(time.Second) }) // runs callbacks of expired operations
			time.Sleep(10 * time.Millisecond)               // until the expiry waits for the lock
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

func TestKafka_OnCompleteBeforeOnExpiration(t *testing.T) {
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

// Several calls race to complete an operation. Only the one that completes it returns
// true.
func TestKafka_TrueOnlyForTheOneThatCompleted(t *testing.T) {
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
			done, err := p.CompleteOrWatch(o, timeout, "a", "b")
			require.NoError(t, err)
			if done {
				trues.Inc()
			}
		})
		wg.Wait()
		require.Eventually(t, func() bool { return o.completed.Load() == 1 }, 10*time.Second, 10*time.Microsecond)
		if n := trues.Load(); n != 1 {
			// No call returned true, so the timeout completed the operation.
			require.Zero(t, n)
			require.Eventually(t, func() bool { return o.expired.Load() == 1 }, 10*time.Second, 10*time.Microsecond)
		}
	}
	require.NoError(t, s.Shutdown(context.Background()))
	empty(t, p, s)
}

// KAFKA-3994, KAFKA-5970, KAFKA-6042: callbacks that called the purgatory deadlocked.
func TestKafka3994And5970And6042_CallbacksMayCallAnything(t *testing.T) {
	p, s, clk := virtual(t)
	again := func(self *op) func() {
		return func() {
			require.False(t, self.ForceComplete())
			p.CheckAndComplete("a")
			p.CheckAndComplete("b")
			p.Len()
			p.Watched()
			done, err := p.CompleteOrWatch(self, time.Hour, "a")
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
		done, err := p.CompleteOrWatch(o, time.Second, "a", "b")
		require.NoError(t, err)
		require.True(t, done)
		empty(t, p, s)
	})
}

// KAFKA-2160: keys without operations stayed in the map for ever. Go's maps do not shrink
// by themselves either.
func TestKafka2160_KeysWithoutWatchersTakeNoMemory(t *testing.T) {
	p, s, _ := virtual(t, purgatory.WithShards(32)) // each shard may keep room for 64 keys
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
	round(1000) // fills what the Scheduler keeps as a spare
	before := heap()
	round(20_000)
	require.Less(t, heap()-before, 300_000, "bytes left of 40,000 keys")
	runtime.KeepAlive(p)
}

// KAFKA-2253: an operation is added to a key while the key's last operation leaves. The
// new operation must not get into a list that is no longer in the map.
func TestKafka2253_RemovalRacesWithANewWatch(t *testing.T) {
	p, s := realTime(t)
	const n = 20_000
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range n / 4 {
				o := new(op)
				done, err := p.CompleteOrWatch(o, time.Minute, "a", "b")
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

// KAFKA-664: the purgatory keeps no reference to an operation that was completed, expired
// or cancelled.
func TestKafka664_KeepsNothingAlive(t *testing.T) {
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
	runtime.GC() // only once: a sync.Pool keeps objects for one collection
	for name, o := range gone {
		require.Nil(t, o.Value(), name)
	}
	require.False(t, stays.IsCompleted())
	runtime.KeepAlive(s)
}

// KAFKA-16663: the timers of completed operations stayed pending until their timeouts.
func TestKafka16663_TheTimerGoesWithTheCompletion(t *testing.T) {
	p, s, _ := virtual(t)
	for name, end := range map[string]func(*op){
		"checked":   func(o *op) { o.ready.Store(true); p.CheckAndComplete("b") },
		"forced":    func(o *op) { o.ForceComplete() },
		"cancelled": func(*op) { p.CancelForKey("a") },
	} {
		o := watch(t, p, new(op), never, "a", "b")
		require.Equal(t, 1, s.Len(), name)
		end(o)
		require.Zero(t, s.Len(), name)
	}
	empty(t, p, s)
}
