package purgatory_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// The model is a simple purgatory: a list of operations, each with its keys and its
// deadline. The test makes the same random calls to the model and to a Purgatory, also
// from callbacks. It compares both after every step.

type modelOp struct {
	purgatory.Delayed[int]
	r *modelRun

	// State of the model.

	keys                       []int
	deadline                   time.Time
	waiting, completed, handed bool
	// ready is what TryComplete returns. The readyAt-th call of TryComplete makes it
	// true.
	ready   bool
	readyAt int

	asked            int
	expiring         bool // OnComplete has run, and OnExpiration must follow
	calledOnComplete bool
}

func (o *modelOp) TryComplete() bool {
	require.False(o.r.t, o.completed, "TryComplete of a completed operation")
	o.asked++
	o.ready = o.ready || o.asked == o.readyAt
	return o.ready
}

func (o *modelOp) OnComplete() {
	r := o.r
	require.False(r.t, o.calledOnComplete, "OnComplete twice")
	require.True(r.t, o.IsCompleted())
	o.calledOnComplete = true
	if r.cause == byTimeout {
		require.True(r.t, o.waiting)
		require.False(r.t, o.deadline.After(r.clk.Now()), "expired early")
		o.expiring = true
		r.cover.expired++
	} else {
		require.True(r.t, o.ready || r.forcing == o, "neither ready nor forced")
		r.cover.completed++
		*r.count++
	}
	o.waiting, o.completed = false, true
	r.nested()
}

func (o *modelOp) OnExpiration() {
	require.True(o.r.t, o.expiring, "OnExpiration without a timeout, or twice, or before OnComplete")
	o.expiring = false
	o.r.nested()
}

type cause int

const (
	byCall cause = iota
	byTimeout
)

type modelCoverage struct {
	given, atOnce, second, completed, expired, cancelled, again, forced, forcedBefore, nested, keyless, handedBack int
}

// choices provides the random decisions of a run, from a generator or from a fuzzer's
// bytes.
type choices interface{ IntN(n int) int }

type modelRun struct {
	t     testing.TB
	rng   choices
	clk   *timertest.Clock
	s     *timer.Scheduler
	p     *purgatory.Purgatory[int]
	ops   []*modelOp // the operations that wait or may wait, in the order in which they were added
	cover *modelCoverage
	depth int

	// These fields describe the innermost running call.

	cause   cause
	count   *int     // of the completions by this call
	forcing *modelOp // the operation of a ForceComplete
}

const modelKeys = 6

func newModelRun(t testing.TB, rng choices, cover *modelCoverage) *modelRun {
	r := &modelRun{t: t, rng: rng, cover: cover, clk: timertest.NewClock(epoch), count: new(int)}
	r.s = timer.New(timer.WithClock(r.clk), timer.WithExecutor(executor.NewInline()), timer.WithTick(time.Millisecond))
	r.p = purgatory.New[int](r.s, purgatory.WithShards(1<<rng.IntN(4)))
	return r
}

// call runs f, which calls the purgatory, and returns how many operations f completed.
func (r *modelRun) call(forcing *modelOp, f func()) (completions int) {
	cause, count, was := r.cause, r.count, r.forcing
	r.cause, r.count, r.forcing = byCall, &completions, forcing
	f()
	r.cause, r.count, r.forcing = cause, count, was
	return completions
}

// nested is called in callbacks. Sometimes it makes a random call.
func (r *modelRun) nested() {
	if r.depth < 3 && r.rng.IntN(3) == 0 {
		r.depth++
		r.cover.nested++
		r.change()
		r.depth--
	}
}

func (r *modelRun) pick() *modelOp {
	if len(r.ops) == 0 {
		return nil
	}
	return r.ops[r.rng.IntN(len(r.ops))]
}

func (r *modelRun) give(o *modelOp) {
	o.keys = nil
	for range r.rng.IntN(5) {
		o.keys = append(o.keys, r.rng.IntN(modelKeys)) // may repeat a key
	}
	if len(o.keys) == 0 {
		r.cover.keyless++
	}
	timeout := time.Duration(r.rng.IntN(300)-10) * time.Millisecond
	o.deadline = r.clk.Now().Add(timeout)
	o.readyAt = 0
	if r.rng.IntN(8) == 0 {
		o.readyAt = o.asked + 2
	}
	// After its first check the operation waits, at the end of all lists.
	r.ops = append(slices.DeleteFunc(r.ops, func(x *modelOp) bool { return x == o }), o)
	forced, asked := o.completed, o.asked
	o.waiting, o.handed = !forced, false
	var done bool
	var err error
	n := r.call(nil, func() {
		if forced {
			r.forcing = o
		}
		done, err = r.p.CompleteOrWatch(o, timeout, o.keys...)
	})
	require.NoError(r.t, err)
	switch {
	case forced:
		r.cover.forcedBefore++
		require.False(r.t, done)
		require.Equal(r.t, 1, n)
		require.Zero(r.t, o.asked)
	case done:
		require.Equal(r.t, 1, n)
		require.True(r.t, o.completed)
		if o.asked == asked+1 {
			r.cover.atOnce++
		} else {
			r.cover.second++
			require.Equal(r.t, asked+2, o.asked)
		}
	default:
		require.Zero(r.t, n)
		require.False(r.t, o.completed)
		require.Equal(r.t, asked+2, o.asked)
		r.cover.given++
	}
}

func (r *modelRun) change() {
	switch k := r.rng.IntN(12); {
	case k < 5:
		o := &modelOp{r: r}
		o.ready = r.rng.IntN(10) == 0
		if r.rng.IntN(20) == 0 {
			require.True(r.t, o.ForceComplete())
			o.completed = true
		}
		r.give(o)
	case k < 6:
		if o := r.pick(); o != nil {
			o.ready = true
		}
	case k < 9:
		key := r.rng.IntN(modelKeys)
		var due []*modelOp
		for _, o := range r.ops {
			if o.waiting && o.ready && slices.Contains(o.keys, key) {
				due = append(due, o)
			}
		}
		var got int
		n := r.call(nil, func() { got = r.p.CheckAndComplete(key) })
		require.Equal(r.t, n, got, "CheckAndComplete(%d)", key)
		for _, o := range due {
			require.False(r.t, o.waiting, "CheckAndComplete left a ready operation waiting")
		}
	case k < 10:
		o := r.pick()
		if o == nil {
			return
		}
		was := o.completed
		var done bool
		n := r.call(o, func() { done = o.ForceComplete() })
		require.Equal(r.t, !was, done, "ForceComplete")
		if done {
			require.Equal(r.t, 1, n)
			r.cover.forced++
		}
	case k < 11:
		key := r.rng.IntN(modelKeys)
		var want []purgatory.Operation[int]
		for _, o := range r.ops {
			if o.waiting && slices.Contains(o.keys, key) {
				want = append(want, o)
				o.waiting, o.handed = false, true
			}
		}
		got := r.p.CancelForKey(key)
		require.Equal(r.t, len(want), len(got))
		for i := range want {
			require.Same(r.t, want[i], got[i])
		}
		r.cover.cancelled += len(want)
	default:
		for _, o := range r.ops {
			if o.handed && !o.completed {
				r.cover.again++
				r.give(o)
				break
			}
		}
	}
}

func (r *modelRun) step() {
	if r.rng.IntN(4) > 0 {
		r.change()
	} else {
		r.cause = byTimeout
		r.clk.Advance(time.Duration(r.rng.IntN(100)) * time.Millisecond)
		r.cause = byCall
		for _, o := range r.ops {
			require.False(r.t, o.waiting && !o.deadline.After(r.clk.Now()), "not expired")
		}
	}
	r.ops = slices.DeleteFunc(r.ops, func(o *modelOp) bool { return o.completed && r.rng.IntN(4) > 0 })
	r.check()
}

func (r *modelRun) check() {
	waiting, watched, atOnce, keys := 0, 0, 0, map[int]bool{}
	for _, o := range r.ops {
		require.Equal(r.t, o.completed, o.IsCompleted())
		require.Equal(r.t, o.completed, o.calledOnComplete)
		require.False(r.t, o.expiring)
		if !o.waiting {
			continue
		}
		waiting++
		if !o.deadline.After(r.clk.Now()) {
			atOnce++ // its timer has fired, and its callback runs when the clock moves
		}
		for _, key := range o.keys {
			keys[key] = true
		}
		watched += len(o.keys)
	}
	st := r.p.Stats()
	require.Equal(r.t, waiting, r.p.Len())
	require.Equal(r.t, watched, r.p.Watched())
	require.Equal(r.t, len(keys), st.Keys)
	require.Equal(r.t, waiting, st.Delayed)
	require.Equal(r.t, waiting-atOnce, r.s.Len(), "timers")
	balanced(r.t, st)
}

func (r *modelRun) finish() {
	want := map[*modelOp]bool{}
	for _, o := range r.ops {
		if o.waiting {
			want[o] = true
		}
	}
	pending, err := shutDown(context.Background(), r.p)
	require.NoError(r.t, err)
	require.Len(r.t, pending, len(want))
	for _, o := range pending {
		require.True(r.t, want[o.(*modelOp)])
		r.cover.handedBack++
	}
	require.Zero(r.t, r.s.Len())
	r.clk.Advance(time.Hour) // fires nothing
	require.Empty(r.t, slices.Collect(leftover(r.s)))
}

func TestPurgatory_Model(t *testing.T) {
	seed := rand.Uint64()
	if v := os.Getenv("TICKLESS_SEED"); v != "" {
		var err error
		seed, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err, "TICKLESS_SEED")
	}
	t.Logf("TICKLESS_SEED=%d", seed)
	steps := 50_000
	if v := os.Getenv("TICKLESS_MODEL"); v != "" {
		var err error
		steps, err = strconv.Atoi(v)
		require.NoError(t, err, "TICKLESS_MODEL")
	}
	const stepsPerRun = 300
	var cover modelCoverage
	for i := range max(steps/stepsPerRun, 1) {
		r := newModelRun(t, rand.New(rand.NewPCG(seed, uint64(i))), &cover)
		for range stepsPerRun {
			r.step()
			if t.Failed() {
				t.Fatalf("run %d", i)
			}
		}
		r.finish()
	}
	t.Logf("%+v", cover)
	for name, n := range map[string]int{
		"given": cover.given, "atOnce": cover.atOnce, "second": cover.second, "completed": cover.completed,
		"expired": cover.expired, "cancelled": cover.cancelled, "again": cover.again, "forced": cover.forced,
		"forcedBefore": cover.forcedBefore, "nested": cover.nested, "keyless": cover.keyless, "handedBack": cover.handedBack,
	} {
		require.NotZero(t, n, name)
	}
}

// fuzzBytes makes choices from the bytes of a fuzzer.
type fuzzBytes struct{ b []byte }

func (f *fuzzBytes) IntN(n int) int {
	if len(f.b) == 0 {
		return 0
	}
	v := int(f.b[0])
	f.b = f.b[1:]
	if n > 256 && len(f.b) > 0 {
		v = v<<8 | int(f.b[0])
		f.b = f.b[1:]
	}
	return v % n
}

func FuzzPurgatory(f *testing.F) {
	for i := range 4 {
		seed := make([]byte, 300)
		rng := rand.New(rand.NewPCG(uint64(i), 0))
		for j := range seed {
			seed[j] = byte(rng.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 2000 {
			t.Skip("too long")
		}
		in := &fuzzBytes{b}
		r := newModelRun(t, in, new(modelCoverage))
		for len(in.b) > 0 {
			r.step()
		}
		r.finish()
	})
}
