package purgatory_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const never = time.Duration(math.MaxInt64)

// An op is an operation that counts its calls. Its TryComplete returns ready, or the
// result of try if that is set.
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
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithTick(time.Millisecond))
	p := purgatory.New[string](s, opts...)
	t.Cleanup(func() {
		p.Shutdown(context.Background())
		s.Close()
	})
	return p, s, clk
}

// shutDown shuts p down and returns the operations that were waiting.
func shutDown[K comparable](ctx context.Context, p *purgatory.Purgatory[K]) ([]purgatory.Operation[K], error) {
	err := p.Shutdown(ctx)
	return slices.Collect(p.TakeLeftover()), err
}

// leftover closes s and returns the timers that were pending.
func leftover(s *timer.Scheduler) iter.Seq[timer.Leftover] {
	s.Close()
	return s.TakeLeftover()
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

// watch adds an operation that is not complete.
func watch(t testing.TB, p *purgatory.Purgatory[string], o *op, timeout time.Duration, keys ...string) *op {
	t.Helper()
	done, err := p.CompleteOrWatch(o, timeout, keys...)
	require.NoError(t, err)
	require.False(t, done)
	return o
}

// empty requires that nothing of any operation remains.
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

// No TryComplete starts after the operation is complete, even in a check that still has
// the operation in its snapshot.
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
		done, err := p.CompleteOrWatch(o, time.Minute, "a")
		require.NoError(t, err)
		require.False(t, done)
		require.EqualValues(t, 1, o.completed.Load())
	}
	empty(t, p, s)
}

// The OnComplete of each operation checks the same key, which completes the next
// operation. The calls nest a thousand deep.
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

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

type pointerOp struct{ purgatory.Delayed[*[64]byte] }

func (*pointerOp) TryComplete() bool { return false }
func (*pointerOp) OnComplete()       {}
func (*pointerOp) OnExpiration()     {}

// The purgatory does not keep a key that no operation waits for.
func TestPurgatory_KeepsNoKeyAlive(t *testing.T) {
	s := timer.New(timer.WithClock(timertest.NewClock(epoch)))
	defer s.Close()
	p := purgatory.New[*[64]byte](s)
	give := func() weak.Pointer[[64]byte] {
		key, o := new([64]byte), new(pointerOp)
		p.CompleteOrWatch(o, time.Hour, key)
		require.Equal(t, 1, p.Watched())
		o.ForceComplete()
		return weak.Make(key)
	}
	key := give()
	runtime.GC()
	require.Nil(t, key.Value())
	runtime.KeepAlive(p)
}

// An operation is cancelled after its timer has fired, and then added again. Only then
// the callback of the first timer runs, and must do nothing.
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

// queue is an executor that only queues its callbacks.
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
	for _, n := range []int{0, -1, 3, 6, math.MinInt, 1 << 17} {
		require.PanicsWithValue(t, fmt.Sprintf("purgatory: WithShards: the number of shards must be a power of two up to 65536, got %d", n),
			func() { purgatory.WithShards(n) })
	}
	require.PanicsWithValue(t, "purgatory: WithPanicHandler with a nil func", func() { purgatory.WithPanicHandler(nil) })
	p, _, _ := virtual(t)
	require.PanicsWithValue(t, "purgatory: CompleteOrWatch with a nil Operation",
		func() { p.CompleteOrWatch(nil, time.Hour, "a") })
}

func TestPurgatory_OneShard(t *testing.T) {
	p, s, _ := virtual(t, purgatory.WithShards(1))
	o := watch(t, p, new(op), time.Hour, "a", "b", "c")
	o.ready.Store(true)
	require.Equal(t, 1, p.CheckAndComplete("c"))
	empty(t, p, s)
}

// Any comparable type can be a key.
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
	p.CompleteOrWatch(o, time.Hour, partition{"t", 1}, partition{"t", 2}, partition{"t", 1})
	require.Equal(t, 3, p.Watched())
	require.Equal(t, 2, p.Stats().Keys)
	require.Len(t, p.CancelForKey(partition{"t", 2}), 1)
	require.Zero(t, p.Watched())
}

// The package works in a bubble.
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
		pending, err := shutDown(t.Context(), p)
		require.NoError(t, err)
		require.Empty(t, pending)
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

// ForceComplete waits for a running TryComplete, which may return true.
func TestForceComplete_WaitsForACheck(t *testing.T) {
	for _, answer := range []bool{true, false} {
		p, s, _ := virtual(t)
		o := watch(t, p, new(op), time.Hour, "a")
		forced := make(chan bool, 1)
		o.try = func() bool {
			go func() { forced <- o.ForceComplete() }()
			select {
			case <-forced:
				t.Error("completed while TryComplete ran")
			case <-time.After(10 * time.Millisecond): // until ForceComplete waits for the lock
			}
			return answer
		}
		done := p.CheckAndComplete("a")
		require.Equal(t, !answer, <-forced)
		require.Equal(t, answer, done == 1)
		require.EqualValues(t, 1, o.completed.Load())
		empty(t, p, s)
	}
}

func TestPurgatory_BytesOfAWaitingOperation(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the figures are those of 64 bits")
	}
	const n = 200_000
	require.EqualValues(t, 72, unsafe.Sizeof(purgatory.Delayed[int]{}))
	waiting := func(keys ...int) float64 {
		s := timer.New()
		defer s.Close()
		p := purgatory.New[int](s)
		ops := make([]benchOp, n)
		before := heap()
		for i := range ops {
			_, err := p.CompleteOrWatch(&ops[i], time.Hour, keys...)
			require.NoError(t, err)
		}
		each := float64(heap()-before) / n
		p.Shutdown(t.Context())
		runtime.KeepAlive(ops)
		return each
	}
	one, two := waiting(1), waiting(1, 2)
	t.Logf("one key: %.1f bytes, two: %.1f", one, two)
	require.InDelta(t, 55+32, one, 8)
	require.InDelta(t, 32, two-one, 4)
}
