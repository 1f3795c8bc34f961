package delayqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
)

// Times in a bubble are exact: an element is taken precisely at its deadline.

// A taking is the result of one call of Take, and the time when it returned.
type taking struct {
	v   int
	err error
	at  time.Duration // since the bubble's start
}

// take calls Take on a goroutine of its own.
func take(ctx context.Context, q *Queue[int], begin time.Time) <-chan taking {
	c := make(chan taking, 1)
	go func() {
		v, err := q.Take(ctx)
		c <- taking{v, err, time.Since(begin)}
	}()
	return c
}

func TestQueueTake_EachElementOnceAndAtItsDeadline(t *testing.T) {
	for _, takers := range []int{1, 2, 7, 100} {
		for _, spread := range []time.Duration{1, 20, time.Hour} {
			t.Run(fmt.Sprintf("takers=%d/spread=%v", takers, spread), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const elements = 500
					clk := &countingClock{}
					q := New[int](WithClock(clk))
					begin := time.Now()
					ctx, cancel := context.WithCancel(t.Context())
					deadline := make([]time.Duration, elements)
					times := make([]atomic.Int64, elements)
					var wg sync.WaitGroup
					for range takers {
						wg.Go(func() {
							for {
								v, err := q.Take(ctx)
								if err != nil {
									return
								}
								times[v].Inc()
								if at := time.Since(begin); at != deadline[v] {
									t.Errorf("element %d came at %v, due at %v", v, at, deadline[v])
								}
							}
						})
					}
					for i := range elements {
						if i%50 == 0 {
							synctest.Wait() // some offers find sleeping takers
						}
						deadline[i] = rand.N(spread) + 1
						q.Offer(i, begin.Add(deadline[i]))
					}
					time.Sleep(spread)
					synctest.Wait()
					for i := range times {
						assert.EqualValues(t, 1, times[i].Load(), "element %d", i)
					}
					assert.Equal(t, takers, q.sleeping(), "all wait again")
					cancel()
					wg.Wait()
					assert.False(t, clk.set.Load(), "an alarm is left")
				})
			})
		}
	}
}

func TestQueueTake_NoHerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takers, elements = 1000, 100
		clk := &countingClock{}
		q := New[int](WithClock(clk))
		begin := time.Now()
		for i := range elements {
			q.OfferAfter(i, time.Duration(i+1)*time.Second)
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range takers {
			take(ctx, q, begin)
		}
		synctest.Wait()
		assert.EqualValues(t, 1, clk.resets.Load(), "one alarm for all takers")
		for i := range elements - 1 {
			readings, resets, rings := clk.readings.Load(), clk.resets.Load(), clk.rings.Load()
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, elements-i-1, q.Len())
			// Three readings: by onAlarm, by the woken taker, and for the next element.
			// If all 1,000 takers woke, there would be 999 more.
			require.LessOrEqual(t, clk.readings.Load()-readings, int64(3), "more than one taker woke")
			require.EqualValues(t, 1, clk.rings.Load()-rings)
			require.LessOrEqual(t, clk.resets.Load()-resets, int64(1))
		}
		cancel()
	})
}

func TestQueueTake_OneTakerAtATimeIsAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[int]()
		ctx, cancel := context.WithCancel(t.Context())
		for range 10 {
			take(ctx, q, time.Now())
		}
		synctest.Wait()
		q.mu.Lock() // so that a woken taker cannot continue
		for i := range 5 {
			q.offerLocked(i, int64(-i)) // each element is due, and the new first
			q.wakeOrSetAlarmLocked()
		}
		n := q.sleepingTakers.Len()
		q.mu.Unlock()
		assert.Equal(t, 9, n)
		synctest.Wait()
		assert.Zero(t, q.Len())
		assert.Equal(t, 5, q.sleeping())
		cancel()
	})
}

func TestQueueTake_WhoIsTooLateKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[int]()
		begin := time.Now()
		first := take(t.Context(), q, begin)
		synctest.Wait()
		second := take(t.Context(), q, begin)
		synctest.Wait()
		q.mu.Lock()
		q.offerLocked(0, 0)
		_, ok := q.pollLocked(q.now()) // before the first taker gets the lock
		q.mu.Unlock()
		require.True(t, ok)
		synctest.Wait()
		q.Offer(1, begin)
		assert.Equal(t, taking{1, nil, 0}, <-first)
		q.Offer(2, begin)
		assert.Equal(t, taking{2, nil, 0}, <-second)
	})
}

func TestQueueTake_OffersThatAreNoNewHeadDisturbNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := &countingClock{}
		q := New[int](WithClock(clk))
		begin := time.Now()
		first := take(t.Context(), q, begin)
		q.Offer(0, begin.Add(time.Second))
		synctest.Wait()
		readings, resets := clk.readings.Load(), clk.resets.Load()
		for i := range 1000 {
			q.Offer(i+1, begin.Add(time.Minute))
		}
		assert.Equal(t, readings, clk.readings.Load())
		assert.Equal(t, resets, clk.resets.Load())
		assert.Equal(t, taking{0, nil, time.Second}, <-first)
	})
}

func TestQueueTake_EarlierHeadWhileTheLeaderSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := &countingClock{}
		q := New[int](WithClock(clk))
		begin := time.Now()
		q.Offer(3, begin.Add(time.Hour))
		leader := take(t.Context(), q, begin)
		synctest.Wait()
		follower := take(t.Context(), q, begin)
		synctest.Wait()
		third := take(t.Context(), q, begin)
		synctest.Wait()
		q.Offer(2, begin.Add(time.Minute))
		synctest.Wait()
		q.Offer(1, begin.Add(-time.Minute)) // already due: wakes a taker and sets no alarm
		assert.Equal(t, taking{1, nil, 0}, <-leader)
		assert.Equal(t, taking{2, nil, time.Minute}, <-follower)
		assert.Equal(t, taking{3, nil, time.Hour}, <-third)
		assert.EqualValues(t, 3, clk.resets.Load())
	})
}

func TestQueueTake_HeadTakenAwayWhileTheLeaderSleeps(t *testing.T) {
	ways := map[string]func(q *Queue[int], ticket Ticket){
		"Remove":       func(q *Queue[int], ticket Ticket) { q.Remove(ticket) },
		"Drain":        func(q *Queue[int], _ Ticket) { q.Drain() },
		"Remove later": func(q *Queue[int], ticket Ticket) { time.Sleep(time.Second - 1); q.Remove(ticket) },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := &countingClock{}
				q := New[int](WithClock(clk))
				begin := time.Now()
				ticket, _ := q.Offer(1, begin.Add(time.Second))
				leader := take(t.Context(), q, begin)
				follower := take(t.Context(), q, begin)
				synctest.Wait()
				way(q, ticket)
				q.Offer(2, begin.Add(2*time.Second))
				q.Offer(3, begin.Add(3*time.Second))
				got := []taking{<-leader, <-follower}
				assert.ElementsMatch(t, []taking{{2, nil, 2 * time.Second}, {3, nil, 3 * time.Second}}, got)
				assert.LessOrEqual(t, clk.rings.Load(), int64(3), "the alarm went off too early more than once")
			})
		})
	}
}

func TestQueueTake_HeadTakenWhileTheWokenTakerIsOnItsWay(t *testing.T) {
	// Poll and Take race for each of many elements. A taker that gets no element sleeps
	// on.
	synctest.Test(t, func(t *testing.T) {
		q := New[int]()
		begin := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var got [2000]atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for {
					v, err := q.Take(ctx)
					if err != nil {
						return
					}
					got[v].Inc()
				}
			})
		}
		for i := range got {
			deadline := begin.Add(time.Duration(i) * time.Millisecond)
			q.Offer(i, deadline)
			wg.Go(func() {
				time.Sleep(time.Until(deadline))
				if v, ok := q.Poll(); ok {
					got[v].Inc()
				}
			})
		}
		time.Sleep(time.Hour)
		cancel()
		wg.Wait()
		for i := range got {
			require.EqualValues(t, 1, got[i].Load(), "element %d", i)
		}
	})
}

func TestQueueTake_LeaderLeavesAndAFollowerTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := &countingClock{}
		q := New[int](WithClock(clk))
		begin := time.Now()
		q.Offer(1, begin.Add(time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		leader := take(ctx, q, begin)
		synctest.Wait()
		follower := take(t.Context(), q, begin)
		assert.Equal(t, taking{0, context.DeadlineExceeded, time.Second}, <-leader)
		assert.Equal(t, taking{1, nil, time.Minute}, <-follower)
		assert.EqualValues(t, 1, clk.resets.Load())
	})
}

func TestQueueTake_AlarmIsStoppedWhenTheLastTakerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := &countingClock{}
		q := New[int](WithClock(clk))
		begin := time.Now()
		q.Offer(1, begin.Add(time.Minute))
		for i := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			a, b := take(ctx, q, begin), take(ctx, q, begin)
			synctest.Wait()
			assert.True(t, clk.set.Load())
			cancel()
			<-a
			<-b
			assert.False(t, clk.set.Load(), "round %d", i)
		}
		time.Sleep(time.Hour)
		assert.Zero(t, clk.rings.Load())

		// The element is already due. So Take returns it without the alarm.
		c := take(t.Context(), q, begin)
		assert.Equal(t, taking{1, nil, time.Hour}, <-c)
		q.OfferAfter(2, time.Minute)
		c = take(t.Context(), q, begin)
		synctest.Wait()
		q.OfferAfter(3, 0)
		assert.Equal(t, taking{3, nil, time.Hour}, <-c)
		assert.False(t, clk.set.Load())
	})
}

func TestQueueTake_ContextDoneFromTheStart(t *testing.T) {
	q := New[int]()
	q.OfferAfter(1, 0)
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := q.Take(ctx)
	assert.Equal(t, context.Canceled, err)
	assert.Equal(t, 1, q.Len(), "the element stays")
	v, err := q.Take(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, 1, v)
}

func TestQueueTake_ContextDoneBeforeTheElementIsDue(t *testing.T) {
	// The canceled taker is still the first in line when the element falls due. The other
	// taker must get the element.
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			q := New[int]()
			begin := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			first := take(ctx, q, begin)
			synctest.Wait()
			second := take(t.Context(), q, begin)
			synctest.Wait()
			cancel()
			q.OfferAfter(1, 0)
			assert.Equal(t, taking{0, context.Canceled, 0}, <-first)
			assert.Equal(t, taking{1, nil, 0}, <-second)
		}
	})
}

func TestQueueTake_ContextEndsAtTheMomentOfDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds, quitters = 1000, 3
		q := New[int]()
		for round := range rounds {
			begin := time.Now()
			deadline := begin.Add(time.Second)
			var quit [quitters]<-chan taking
			for i := range quit {
				ctx, cancel := context.WithDeadline(t.Context(), deadline)
				defer cancel()
				quit[i] = take(ctx, q, begin)
			}
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			stays := take(ctx, q, begin)
			if round%2 == 0 {
				synctest.Wait()
			}
			q.Offer(round, deadline)
			time.Sleep(time.Second)
			synctest.Wait()
			require.Zero(t, q.Len(), "round %d: a due element, and a taker that sleeps", round)
			cancel()
			got := 0
			for _, c := range append(quit[:], stays) {
				if r := <-c; r.err == nil {
					got++
					require.Equal(t, taking{round, nil, time.Second}, r)
				}
			}
			require.Equal(t, 1, got, "round %d", round)
			require.Zero(t, q.sleeping())
			require.False(t, q.hasAwakeTaker)
		}
	})
}

func TestQueueTake_AlarmRingsWhenItShouldNot(t *testing.T) {
	// An alarm that goes off at a wrong time does no harm.
	synctest.Test(t, func(t *testing.T) {
		clk := &countingClock{}
		q := New[int](WithClock(clk))
		begin := time.Now()
		q.Offer(1, begin.Add(time.Minute))
		a := take(t.Context(), q, begin)
		b := take(t.Context(), q, begin)
		synctest.Wait()
		clk.f()
		clk.f()
		synctest.Wait()
		q.Offer(0, begin.Add(time.Second))
		clk.f()
		assert.ElementsMatch(t, []taking{{0, nil, time.Second}, {1, nil, time.Minute}}, []taking{<-a, <-b})
		clk.f()
		q.OfferAfter(2, time.Second)
		clk.f()
		assert.Equal(t, taking{2, nil, time.Minute + time.Second}, <-take(t.Context(), q, begin))
	})
}

func TestQueueTake_ElementThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := &countingClock{}
		q := New[int](WithClock(clk))
		q.OfferAfter(1, 1<<63-1)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		c := take(ctx, q, begin)
		synctest.Wait()
		assert.Zero(t, clk.resets.Load())
		assert.Equal(t, taking{0, context.DeadlineExceeded, 1000 * time.Hour}, <-c)
	})
}

func TestQueueTake_OnAVirtualClock(t *testing.T) {
	clk := newFakeClock(start)
	q := New[int](WithClock(clk))
	q.Offer(1, start.Add(time.Minute))
	q.Offer(2, start.Add(2*time.Minute))
	type result struct {
		v  int
		at time.Time
	}
	results := make(chan result)
	go func() {
		for range 2 {
			v, _ := q.Take(context.Background())
			results <- result{v, clk.Now()}
		}
	}()
	<-clk.reset
	clk.Advance(time.Minute)
	assert.Equal(t, result{1, start.Add(time.Minute)}, <-results)
	<-clk.reset
	clk.Advance(time.Hour)
	assert.Equal(t, result{2, start.Add(time.Hour + time.Minute)}, <-results)
}

// TestQueue_Stress takes, polls and removes elements while contexts of takers end, on the
// real clock. Each element must come out once, and not early.
func TestQueue_Stress(t *testing.T) {
	const producers, each = 4, 4000
	q := New[int]()
	var deadlines [producers * each]atomic.Time
	var out [producers * each]atomic.Int64
	var left atomic.Int64
	left.Store(producers * each)
	got := func(v int, early bool) {
		if early && time.Now().Before(deadlines[v].Load()) {
			t.Errorf("element %d came early", v)
		}
		out[v].Inc()
		left.Dec()
	}
	done, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				v := p*each + i
				deadline := time.Now().Add(time.Duration(rand.IntN(200)-50) * time.Microsecond)
				deadlines[v].Store(deadline)
				ticket, _ := q.Offer(v, deadline)
				if i%4 == 0 {
					if v, ok := q.Remove(ticket); ok {
						got(v, false)
					}
				}
				if i%64 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	for i := range 6 {
		wg.Go(func() {
			for done.Err() == nil {
				ctx, cancel := context.WithCancel(done)
				if i > 0 { // taker 0 never leaves
					go func() {
						for range rand.IntN(20) {
							runtime.Gosched()
						}
						cancel()
					}()
				}
				if v, err := q.Take(ctx); err == nil {
					got(v, true)
				} else if ctx.Err() == nil {
					t.Errorf("Take: %v", err)
				}
				cancel()
			}
		})
	}
	wg.Go(func() {
		for done.Err() == nil {
			if v, ok := q.Poll(); ok {
				got(v, true)
			}
			runtime.Gosched()
		}
	})
	for left.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	wg.Wait()
	for v := range out {
		require.EqualValues(t, 1, out[v].Load(), "element %d", v)
	}
	require.NoError(t, q.check())
	require.Zero(t, q.Len())
	require.Zero(t, q.sleeping())
	require.False(t, q.hasAwakeTaker)
}

// TestQueue_StressTakersAlone is like TestQueue_Stress, but without a poller, and the
// context of every taker ends. So nothing hides a lost wake-up.
func TestQueue_StressTakersAlone(t *testing.T) {
	const takers, elements = 4, 5000
	q := New[int]()
	taken := make(chan int, takers)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range takers {
		wg.Go(func() {
			for ctx.Err() == nil {
				quit, cancel := context.WithCancel(ctx)
				timer := time.AfterFunc(rand.N(50*time.Microsecond), cancel)
				if v, err := q.Take(quit); err == nil {
					taken <- v
				}
				timer.Stop()
				cancel()
			}
		})
	}
	steady := make(chan struct{})
	go func() { // a taker that stays, but is mostly last in line
		defer close(steady)
		for {
			v, err := q.Take(ctx)
			if err != nil {
				return
			}
			taken <- v
		}
	}()
	for i := range elements {
		q.OfferAfter(i, rand.N(100*time.Microsecond)-30*time.Microsecond)
		// There is one element at a time, so that a lost wake-up becomes a deadlock.
		require.Equal(t, i, <-taken)
	}
	cancel()
	wg.Wait()
	<-steady
	require.Empty(t, taken)
}
