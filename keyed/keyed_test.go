package keyed_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/timer"
)

// The model is a map of the pending values, and a list of the expired values whose
// callbacks have not run.
func TestModel(t *testing.T) {
	rng := newRand(t)
	type entry struct {
		value    int
		deadline time.Duration
	}
	type fired struct {
		key, value int
		at         time.Duration
	}
	for round := range 60 {
		tick := []time.Duration{1, 10, 1000}[round%3]
		s, clk := virtual(t, timer.WithTick(tick), timer.WithShards(1+round%4))
		now := func() time.Duration { return clk.Now().Sub(epoch) }
		ceil := func(d time.Duration) time.Duration { return (d + tick - 1) / tick * tick }
		model := map[int]entry{}
		var got, want []fired
		k := keyed.New(s, func(key, value int) { got = append(got, fired{key, value, now()}) })
		var expired []fired // fires at the next tick
		expire := func(until time.Duration) {
			for key, e := range model {
				if e.deadline <= until {
					expired = append(expired, fired{key, e.value, ceil(e.deadline)})
					delete(model, key)
				}
			}
			var later []fired
			for _, f := range expired {
				if f.at <= until {
					want = append(want, f)
				} else {
					later = append(later, f)
				}
			}
			expired = later
		}
		check := func() {
			t.Helper()
			byTime := func(a, b fired) int {
				if a.at != b.at {
					return int(a.at - b.at)
				}
				return cmp.Or(a.key-b.key, a.value-b.value)
			}
			require.True(t, slices.IsSortedFunc(got, func(a, b fired) int { return int(a.at - b.at) }), "fired in the order of their times")
			slices.SortFunc(got, byTime)
			slices.SortFunc(want, byTime)
			require.Equal(t, want, got)
			got, want = got[:0], want[:0]
			keys := map[int]bool{}
			for key := range model {
				keys[key] = true
			}
			for _, f := range expired {
				keys[f.key] = true
			}
			// Len may count keys that have expired, until their callbacks.
			require.LessOrEqual(t, len(model), k.Len())
			require.GreaterOrEqual(t, len(keys), k.Len())
			require.Equal(t, len(model)+len(expired), s.Len())
		}
		// If d is zero or less, the key is due at the next Advance.
		set := func(key, value int, d time.Duration) {
			if d <= 0 {
				// Older values of the key leave first.
				for i := range expired {
					if expired[i].key == key {
						value, expired[i].value = expired[i].value, value
					}
				}
				want = append(want, fired{key, value, now()})
				delete(model, key)
			} else {
				model[key] = entry{value, now() + d}
			}
		}
		for i := range 400 {
			key := rng.IntN(12)
			d := time.Duration(rng.IntN(20*int(tick)) - 2*int(tick))
			e, pending := model[key]
			switch rng.IntN(15) {
			case 11:
				v, ok := k.GetAndMove(key, d)
				require.Equal(t, pending, ok, "GetAndMove")
				require.Equal(t, e.value, v)
				if pending {
					set(key, e.value, d)
				}
			case 12:
				v, ok, err := k.Swap(key, i, d)
				require.NoError(t, err)
				require.Equal(t, pending, ok, "Swap")
				require.Equal(t, e.value, v)
				set(key, i, d)
			case 10:
				ok, err := k.SetIfAbsent(key, i, d)
				require.NoError(t, err)
				require.Equal(t, !pending, ok, "SetIfAbsent")
				if ok {
					set(key, i, d)
				}
			case 0, 1, 2:
				require.NoError(t, k.Set(key, i, d))
				set(key, i, d)
			case 3:
				require.Equal(t, pending, k.Move(key, d), "Move")
				if pending {
					set(key, e.value, d)
				}
			case 4:
				v, ok := k.Remove(key)
				require.Equal(t, pending, ok, "Remove")
				require.Equal(t, e.value, v)
				delete(model, key)
			case 5, 6:
				v, ok := k.Get(key)
				require.Equal(t, pending, ok, "Get")
				require.Equal(t, e.value, v)
				at, ok := k.Deadline(key)
				require.Equal(t, pending, ok, "Deadline")
				if ok {
					require.Equal(t, e.deadline, at.Sub(epoch))
				}
			case 8:
				all := map[int]entry{}
				for x := range k.Items() {
					all[x.Key] = entry{x.Value, x.Deadline.Sub(epoch)}
				}
				require.Equal(t, model, all)
			case 7:
				if rng.IntN(10) > 0 {
					continue
				}
				last := time.Duration(-1)
				n := k.Drain(func(key, value int) {
					e, ok := model[key]
					require.True(t, ok, "drained %d", key)
					require.Equal(t, e.value, value)
					require.GreaterOrEqual(t, e.deadline, last, "by deadline")
					last = e.deadline
					delete(model, key)
				})
				require.Zero(t, len(model), "drained %d", n)
			default:
				d := time.Duration(rng.IntN(10 * int(tick)))
				expire(now() + d)
				clk.Advance(d)
				check()
			}
		}
		clk.Advance(0)
		check()
		require.Len(t, closeAll(s), len(model)+len(expired))
		balanced(t, s.Stats())
	}
}

func TestSetReplacesValueAndDeadline(t *testing.T) {
	s, clk := virtual(t)
	var got []string
	k := keyed.New(s, func(key, value string) {
		got = append(got, fmt.Sprint(key, "=", value, " at ", clk.Now().Sub(epoch)))
	})
	require.NoError(t, k.Set("a", "1", time.Second))
	require.NoError(t, k.Set("a", "2", time.Minute))
	require.NoError(t, k.Set("b", "3", time.Minute))
	require.NoError(t, k.Set("b", "4", time.Second))
	require.Equal(t, 2, k.Len())
	v, ok := k.Get("a")
	require.True(t, ok)
	require.Equal(t, "2", v)
	clk.Advance(time.Hour)
	require.Equal(t, []string{"b=4 at 1s", "a=2 at 1m0s"}, got)
	_, ok = k.Get("a")
	require.False(t, ok)
	require.False(t, k.Move("a", time.Second))
	v, ok = k.Remove("a")
	require.False(t, ok)
	require.Zero(t, v)
	require.Zero(t, k.Len())
}

func TestDueAtOnce(t *testing.T) {
	s, clk := virtual(t)
	var got []int
	k := keyed.New(s, func(_ string, v int) { got = append(got, v) })
	for i, d := range []time.Duration{0, -1, math.MinInt64} {
		require.NoError(t, k.Set("new", 10+i, d))
		require.NoError(t, k.Set("over", 0, time.Hour))
		require.NoError(t, k.Set("over", 20+i, d))
		require.NoError(t, k.Set("moved", 30+i, time.Hour))
		require.True(t, k.Move("moved", d))
		require.False(t, k.Move("moved", time.Hour), "the key has expired")
		_, ok := k.Remove("new")
		require.False(t, ok)
		require.Empty(t, maps.Collect(k.All()))
		require.Equal(t, 3, k.Len(), "until the callbacks begin")
		require.Empty(t, got, "the callback ran inside Set")
		clk.Advance(0)
		require.Equal(t, []int{10 + i, 20 + i, 30 + i}, got)
		got = nil
	}
	require.NoError(t, k.Set("far", 1, math.MaxInt64))
	require.True(t, k.Move("far", math.MaxInt64))
	clk.Advance(200 * 365 * 24 * time.Hour)
	require.Empty(t, got)
	require.Equal(t, 1, k.Len())
	balanced(t, s.Stats())
}

func TestFromInsideTheCallback(t *testing.T) {
	s, clk := virtual(t)
	n := 0
	var k *keyed.Timers[string, int]
	k = keyed.New(s, func(key string, v int) {
		_, ok := k.Get(key)
		require.False(t, ok, "the key has expired")
		if n++; v > 0 {
			require.NoError(t, k.Set(key, v-1, time.Second))
			require.True(t, k.Move(key, 2*time.Second))
		} else {
			k.Drain(func(string, int) {})
		}
	})
	require.NoError(t, k.Set("a", 3, time.Second))
	clk.Advance(6 * time.Second)
	require.Equal(t, 3, n)
	clk.Advance(time.Second)
	require.Equal(t, 4, n)
	require.Zero(t, k.Len())
}

func TestDrain(t *testing.T) {
	s, clk := virtual(t, timer.WithShards(3))
	k := keyed.New(s, func(int, int) { t.Error("fired") })
	require.Zero(t, k.Drain(func(int, int) {}))
	for i := range 100 {
		require.NoError(t, k.Set(i, -i, time.Duration(100-i)*time.Second))
	}
	next := 99
	require.Equal(t, 100, k.Drain(func(key, value int) {
		require.Equal(t, next, key, "by deadline")
		require.Equal(t, -key, value)
		next--
		_, ok := k.Get(key)
		require.False(t, ok)
	}))
	require.Zero(t, k.Len())
	require.Zero(t, s.Len())
	clk.Advance(time.Hour)
	balanced(t, s.Stats())
}

// Drain skips a key that gets another deadline, is removed or fires before its turn.
func TestChangesDuringADrain(t *testing.T) {
	s, clk := virtual(t)
	fired := map[string]int{}
	k := keyed.New(s, func(key string, v int) { fired[key] = v })
	for i, key := range []string{"first", "set", "moved", "at once", "removed", "again", "last"} {
		require.NoError(t, k.Set(key, i, time.Minute))
		require.NoError(t, k.Set(key, i, time.Duration(i+1)*time.Second))
	}
	drained := map[string]int{}
	require.Equal(t, 2, k.Drain(func(key string, v int) {
		drained[key] = v
		if key == "first" {
			require.NoError(t, k.Set("set", 10, time.Hour))
			require.True(t, k.Move("moved", 5*time.Second))
			require.True(t, k.Move("at once", 0))
			_, ok := k.Remove("removed")
			require.True(t, ok)
			_, ok = k.Remove("again")
			require.True(t, ok)
			require.NoError(t, k.Set("again", 12, 8*time.Second))
			require.NoError(t, k.Set("new", 13, time.Second))
			require.NoError(t, k.Set("first", 14, time.Second))
		}
	}))
	require.Equal(t, map[string]int{"first": 0, "last": 6}, drained)
	clk.Advance(time.Hour)
	require.Equal(t, map[string]int{"first": 14, "set": 10, "moved": 2, "at once": 3, "again": 12, "new": 13}, fired)
	balanced(t, s.Stats())
}

// If the function of a Drain panics, only the key that it was called with is lost.
func TestDrainPanics(t *testing.T) {
	s, clk := virtual(t, timer.WithShards(2))
	fired := map[int]bool{}
	k := keyed.New(s, func(key, _ int) { fired[key] = true })
	for i := range 10 {
		require.NoError(t, k.Set(i, 0, time.Duration(1+i)*time.Second))
	}
	require.PanicsWithValue(t, "oops", func() {
		k.Drain(func(key, _ int) {
			if key == 3 {
				panic("oops")
			}
		})
	})
	require.Equal(t, 6, k.Len())
	require.NoError(t, k.Set(0, 0, time.Second), "the Timers stay usable")
	clk.Advance(time.Minute)
	require.Equal(t, map[int]bool{0: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true}, fired)
	balanced(t, s.Stats())
}

// Two concurrent Drains take each key once.
func TestDrainsAtOnce(t *testing.T) {
	s := timer.New()
	defer s.Close()
	k := keyed.New(s, func(int, int) {})
	var taken [5000]atomic.Int32
	for i := range taken {
		require.NoError(t, k.Set(i, i, time.Hour))
	}
	var wg sync.WaitGroup
	var total atomic.Int64
	for range 4 {
		wg.Go(func() {
			total.Add(int64(k.Drain(func(key, _ int) { taken[key].Inc() })))
		})
	}
	wg.Wait()
	require.EqualValues(t, len(taken), total.Load())
	for i := range taken {
		require.EqualValues(t, 1, taken[i].Load())
	}
}

// A method panics if its key is invalid, and the Timers stay usable.
func TestKeysThatCannotBe(t *testing.T) {
	s, clk := virtual(t)
	n := 0
	k := keyed.New(s, func(key any, v int) { n++ })
	require.NoError(t, k.Set("good", 1, time.Second))
	for _, bad := range []any{[]int{1}, map[int]int{}, func() {}, [1]any{[]int{}}, struct{ a any }{[]int{}}} {
		require.Panics(t, func() { k.Set(bad, 1, time.Second) }, "%T", bad)
		require.Panics(t, func() { k.Get(bad) }, "%T", bad)
		require.Panics(t, func() { k.Move(bad, time.Second) }, "%T", bad)
		require.Panics(t, func() { k.Remove(bad) }, "%T", bad)
	}
	// The table could never find a key that is not equal to itself.
	for _, bad := range []any{math.NaN(), float32(math.NaN()), [1]float64{math.NaN()}, struct{ f float64 }{math.NaN()}, complex(0, math.NaN())} {
		const msg = "keyed: a key must be equal to itself"
		require.PanicsWithValue(t, msg, func() { k.Set(bad, 1, time.Second) })
		require.PanicsWithValue(t, msg, func() { k.Get(bad) })
	}
	require.NoError(t, k.Set(0.0, 1, time.Second))
	v, ok := k.Get(math.Copysign(0, -1))
	require.True(t, ok, "zero is equal to negative zero")
	require.Equal(t, 1, v)
	require.NoError(t, k.Set(nil, 1, time.Second), "nil is a key")
	require.Equal(t, 3, k.Len())
	clk.Advance(time.Second)
	require.Equal(t, 3, n)
	balanced(t, s.Stats())
}

func TestNilFuncPanics(t *testing.T) {
	s, _ := virtual(t)
	require.PanicsWithValue(t, "keyed: New with a nil Scheduler or func", func() { keyed.New[int, int](s, nil) })
}

func TestCallbackPanics(t *testing.T) {
	panics := 0
	s, clk := virtual(t, timer.WithPanicHandler(func(any, []byte) { panics++ }))
	n := 0
	k := keyed.New(s, func(key, _ int) {
		if key%2 == 0 {
			panic(key)
		}
		n++
	})
	for i := range 10 {
		require.NoError(t, k.Set(i, i, time.Second))
	}
	clk.Advance(time.Second)
	require.Equal(t, 5, n)
	require.Equal(t, 5, panics)
	require.Zero(t, k.Len())
}

func TestClose(t *testing.T) {
	s, clk := virtual(t, timer.WithShards(2))
	got := map[string]int{}
	k := keyed.New(s, func(key string, v int) { got[key] = v })
	require.NoError(t, k.Set("a", 1, time.Second))
	require.NoError(t, k.Set("b", 0, time.Hour))
	require.NoError(t, k.Set("b", 2, time.Minute))
	handed := closeAll(s)
	require.Len(t, handed, 2)
	require.Equal(t, epoch.Add(time.Second), handed[0].Deadline)
	require.Equal(t, epoch.Add(time.Minute), handed[1].Deadline)
	require.False(t, k.Move("a", 0))
	_, ok := k.Remove("a")
	require.False(t, ok)
	require.Zero(t, k.Drain(func(string, int) { t.Error("drained") }))
	require.ErrorIs(t, k.Set("a", 3, time.Second), timer.ErrClosed)
	require.ErrorIs(t, k.Set("c", 3, 0), timer.ErrClosed)
	clk.Advance(time.Hour)
	require.Empty(t, got)
	handed[1].Func()
	require.Equal(t, map[string]int{"b": 2}, got)
	require.EqualValues(t, 2, s.Stats().Rejected)
	balanced(t, s.Stats())
}

// Values have expired, but their callbacks have not run. After Close, TakeLeftover
// returns their timers, even if Set or Drain has noticed the expiry.
func TestClose_BeforeTheCallbackOfWhatHasExpired(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Second))
	var got []int
	k := keyed.New(s, func(_ string, v int) { got = append(got, v) })
	require.NoError(t, k.Set("a", 1, time.Millisecond))
	require.NoError(t, k.Set("b", 2, 2*time.Millisecond))
	clk.Advance(10 * time.Millisecond)
	require.NoError(t, k.Set("a", 3, time.Hour))
	require.Equal(t, 2, k.Len())
	require.Equal(t, 1, k.Drain(func(_ string, v int) { require.Equal(t, 3, v) }))
	handed := closeAll(s)
	require.Empty(t, got)
	for _, l := range handed {
		l.Func()
	}
	require.ElementsMatch(t, []int{1, 2}, got)
	balanced(t, s.Stats())
}

func TestMaxPending(t *testing.T) {
	for _, shards := range []int{1, 4} {
		s, clk := virtual(t, timer.WithMaxPending(3), timer.WithShards(shards))
		got := map[int]int{}
		k := keyed.New(s, func(key, v int) { got[key] = v })
		for i := range 3 {
			require.NoError(t, k.Set(i, i, time.Second))
		}
		for _, d := range []time.Duration{time.Second, 1} {
			require.ErrorIs(t, k.Set(3, 3, d), timer.ErrTooManyPending, d)
		}
		require.Equal(t, 3, k.Len())
		_, ok := k.Get(3)
		require.False(t, ok)
		require.NoError(t, k.Set(1, 11, time.Second), "the key is pending")
		_, ok = k.Remove(0)
		require.True(t, ok)
		require.NoError(t, k.Set(3, 3, time.Second), "a key was removed")
		clk.Advance(time.Second)
		require.Equal(t, map[int]int{1: 11, 2: 2, 3: 3}, got)
		for i := range 3 {
			require.NoError(t, k.Set(i, i, time.Second))
		}
		require.EqualValues(t, 2, s.Stats().Rejected)
		balanced(t, s.Stats())
	}
}

// Only one timer may be pending at a time. The keys' timers belong to different shards.
func TestMaxPendingAcrossShards(t *testing.T) {
	s, _ := virtual(t, timer.WithMaxPending(1), timer.WithShards(4))
	k := keyed.New(s, func(int, int) {})
	for i := range 100 {
		require.NoError(t, k.Set(i, i, time.Second))
		require.ErrorIs(t, k.Set(i+1, i, time.Second), timer.ErrTooManyPending)
		_, ok := k.Remove(i)
		require.True(t, ok)
	}
	require.EqualValues(t, 100, s.Stats().Rejected)
	balanced(t, s.Stats())
}

func TestTwoOnOneScheduler(t *testing.T) {
	s, clk := virtual(t)
	var got []string
	a := keyed.New(s, func(k int, v string) { got = append(got, "a"+v) })
	b := keyed.New(s, func(k int, v string) { got = append(got, "b"+v) })
	require.NoError(t, a.Set(1, "1", time.Second))
	require.NoError(t, b.Set(1, "2", 2*time.Second))
	_, ok := a.Remove(2)
	require.False(t, ok)
	require.Equal(t, 1, a.Len())
	clk.Advance(time.Minute)
	require.Equal(t, []string{"a1", "b2"}, got)
}

func TestAllocatesNothingOverAKey(t *testing.T) {
	s, _ := virtual(t)
	ints := keyed.New(s, func(int, *int) {})
	strings := keyed.New(s, func(string, int) {})
	structs := keyed.New(s, func([2]string, int) {})
	v := new(int)
	require.NoError(t, ints.Set(1, v, time.Hour))
	require.NoError(t, strings.Set("key", 1, time.Hour))
	require.NoError(t, structs.Set([2]string{"a", "b"}, 1, time.Hour))
	i := time.Duration(0)
	for name, f := range map[string]func(){
		"Set, later":   func() { i++; ints.Set(1, v, time.Hour+i) },
		"Set, earlier": func() { i++; ints.Set(1, v, time.Hour-i) },
		"Set, string":  func() { strings.Set("key", 2, time.Hour) },
		"Set, array":   func() { structs.Set([2]string{"a", "b"}, 2, time.Hour) },
		"Move":         func() { i++; ints.Move(1, time.Hour-i) },
		"Get":          func() { strings.Get("key") },
	} {
		require.Zero(t, testing.AllocsPerRun(100, f), name)
	}
}

// After a peak, the memory of the entries and of the table is released.
func TestMemoryFallsAfterAPeak(t *testing.T) {
	s, clk := virtual(t, timer.WithShards(2), timer.WithTick(time.Millisecond))
	k := keyed.New(s, func(int, [4]int) {})
	const n = 100_000
	for round, empty := range []func(){
		func() {
			for i := range n {
				_, ok := k.Remove(i)
				require.True(t, ok)
			}
		},
		func() { clk.Advance(time.Second) },
		func() { require.Equal(t, n, k.Drain(func(int, [4]int) {})) },
	} {
		before := heapInUse()
		for i := range n {
			if k.Set(i, [4]int{}, time.Second) != nil {
				t.Fatal("Set")
			}
		}
		peak := heapInUse() - before
		empty()
		clk.Advance(time.Minute)
		left := heapInUse() - before
		require.Less(t, left, peak/20, "%d: of %d bytes at the peak", round, peak)
		require.Zero(t, k.Len())
	}
	runtime.KeepAlive(k)
}

// A value is garbage after it has been replaced, removed, drained, or has fired.
func TestValuesAreReleased(t *testing.T) {
	type payload [1 << 12]byte
	s, clk := virtual(t)
	k := keyed.New(s, func(string, *payload) {})
	var ws []weak.Pointer[payload]
	set := func(key string) {
		p := new(payload)
		ws = append(ws, weak.Make(p))
		require.NoError(t, k.Set(key, p, time.Second))
	}
	for _, key := range []string{"replaced", "removed", "fired"} {
		set(key)
	}
	require.NoError(t, k.Set("replaced", nil, time.Hour))
	k.Remove("removed")
	clk.Advance(time.Second)
	set("drained")
	k.Drain(func(string, *payload) {})
	runtime.GC()
	for i, w := range ws {
		require.Nil(t, w.Value(), "%d", i)
	}
	runtime.KeepAlive(k)
}

// Many goroutines set, move, remove and drain keys, while keys expire. No value comes
// out twice, and the last value of each key comes out.
func TestStress(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	const workers, keys, each = 4, 16, 3000
	out := make([]atomic.Int32, each*keys) // how often each value left
	k := keyed.New(s, func(key, v int) {
		if key != v%keys {
			t.Errorf("value %d came out of key %d", v, key)
		}
		out[v].Inc()
	})
	last := make([]int, keys)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 5))
			for i := range each {
				// Only this worker sets the key, so the worker knows the last value.
				key := w + workers*rng.IntN(keys/workers)
				last[key] = i*keys + key
				if err := k.Set(key, last[key], time.Duration(rng.IntN(300_000)-1000)); err != nil {
					t.Error(err)
				}
				switch other := rng.IntN(keys); rng.IntN(8) {
				case 0:
					if v, ok := k.Remove(other); ok {
						out[v].Inc()
					}
				case 1:
					k.Move(other, time.Duration(rng.IntN(300_000)))
				case 2:
					k.Get(other)
				case 3:
					if rng.IntN(50) == 0 {
						k.Drain(func(_, v int) { out[v].Inc() })
					}
				}
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return s.Len() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, s.Shutdown(t.Context()))
	came := 0
	for v := range out {
		n := out[v].Load()
		came += int(n)
		require.LessOrEqual(t, n, int32(1), "value %d came out %d times", v, n)
	}
	for key, v := range last {
		require.EqualValues(t, 1, out[v].Load(), "the last value of key %d was lost", key)
	}
	require.Greater(t, came, keys)
	balanced(t, s.Stats())
}

// All workers set the same keys. The values that fired, were removed or were replaced
// add up to all values.
func TestStressSameKeys(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	var fired, removed atomic.Int64
	k := keyed.New(s, func(string, int) { fired.Inc() })
	keys := []string{"a", "b", "c"}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 6))
			for i := range 5000 {
				key := keys[rng.IntN(3)]
				if rng.IntN(4) == 0 {
					if _, ok := k.Remove(key); ok {
						removed.Inc()
					}
				} else if err := k.Set(key, i, time.Duration(rng.IntN(20_000))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return s.Len() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, s.Shutdown(t.Context()))
	st := s.Stats()
	require.EqualValues(t, st.Fired, fired.Load())
	require.EqualValues(t, st.Stopped, removed.Load())
	balanced(t, st)
}

// Close runs while keys are set. A value that was set without an error fires, or
// TakeLeftover returns its timer.
func TestCloseRace(t *testing.T) {
	for range 50 {
		s := timer.New(timer.WithTick(time.Microsecond))
		var fired, set atomic.Int64
		k := keyed.New(s, func(int, int) { fired.Inc() })
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for i := range 500 {
					if k.Set(w*500+i, i, time.Duration(i)*time.Microsecond) == nil {
						set.Inc()
					}
				}
			})
		}
		for k.Len() == 0 && set.Load() < 500 {
			runtime.Gosched()
		}
		handed := len(closeAll(s))
		wg.Wait()
		require.NoError(t, s.Shutdown(t.Context()))
		require.EqualValues(t, set.Load(), int(fired.Load())+handed)
		balanced(t, s.Stats())
	}
}

func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		defer s.Close()
		begin := time.Now()
		got := make(chan time.Duration, 1)
		k := keyed.New(s, func(string, int) { got <- time.Since(begin) })
		require.NoError(t, k.Set("a", 1, time.Hour))
		require.Equal(t, time.Hour, <-got)
	})
}

func TestAll_HasEveryKey(t *testing.T) {
	s, _ := virtual(t, timer.WithShards(4))
	k := keyed.New(s, func(int, string) {})
	want := map[int]string{}
	for i := range 1000 {
		want[i] = strconv.Itoa(i)
		require.NoError(t, k.Set(i, want[i], time.Hour))
	}
	require.Equal(t, want, maps.Collect(k.All()))
	n := 0
	for key, value := range k.All() {
		require.Equal(t, want[key], value)
		k.Remove(key) // the loop's body may use the Timers
		if n++; n == 500 {
			break
		}
	}
	require.Equal(t, 500, k.Len())
	for range k.All() {
		n--
	}
	require.Zero(t, n)
}

// Set and Move hold a lock that the callback takes. So the callback must not run inside
// them, even if the delay is zero and the executor runs callbacks immediately.
func TestDueAtOnce_OnASubmitterThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, e := range []executor.Executor{
			executor.NewInline(),
			executor.Func(func(f func()) error { f(); return nil }),
			executor.Func(func(func()) error { return errors.New("refused") }),
		} {
			s := timer.New(timer.WithExecutor(e))
			ran := make(chan int, 3)
			k := keyed.New(s, func(_ string, v int) { ran <- v })
			require.NoError(t, k.Set("a", 1, 0))
			require.NoError(t, k.Set("b", 2, time.Hour))
			require.NoError(t, k.Set("b", 3, -1))
			require.NoError(t, k.Set("c", 4, time.Hour))
			require.True(t, k.Move("c", 0))
			require.Equal(t, 8, <-ran+<-ran+<-ran)
			require.NoError(t, s.Shutdown(t.Context()))
		}
	})
}
