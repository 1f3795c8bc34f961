package deadline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/tickless/tickless/deadline"
)

// withTimeoutCause is the type of WithTimeoutCause, of package context or of this
// package.
type withTimeoutCause func(context.Context, time.Duration, error) (context.Context, context.CancelFunc)

func cancellable(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	_ = cancel
	return ctx
}

// Each case returns a context without calling its methods. A context of package context
// and ours must end in the same way.
func TestContext_Ends(t *testing.T) {
	bg := context.Background()
	pass := func(d time.Duration) {
		time.Sleep(d)
		synctest.Wait()
	}
	for name, run := range map[string]func(with withTimeoutCause) context.Context{
		"pending": func(with withTimeoutCause) context.Context {
			ctx, _ := with(bg, time.Hour, errSlow)
			return ctx
		},
		"timeout": func(with withTimeoutCause) context.Context {
			ctx, _ := with(bg, time.Second, nil)
			pass(time.Second)
			return ctx
		},
		"cancelled": func(with withTimeoutCause) context.Context {
			ctx, cancel := with(bg, time.Second, errSlow)
			cancel()
			pass(time.Second)
			return ctx
		},
		"cancelled after the deadline": func(with withTimeoutCause) context.Context {
			ctx, cancel := with(bg, time.Second, errSlow)
			pass(time.Second)
			cancel()
			return ctx
		},
		"cancelled after the parent": func(with withTimeoutCause) context.Context {
			parent, cancelParent := context.WithCancelCause(bg)
			ctx, cancel := with(parent, time.Hour, errSlow)
			cancelParent(errParent)
			cancel()
			return ctx
		},
		"cancelled before the parent": func(with withTimeoutCause) context.Context {
			parent, cancelParent := context.WithCancelCause(bg)
			ctx, cancel := with(parent, time.Hour, errSlow)
			cancel()
			cancelParent(errParent)
			return ctx
		},
		"parent cancelled": func(with withTimeoutCause) context.Context {
			parent, cancel := context.WithCancelCause(bg)
			ctx, _ := with(parent, time.Hour, errSlow)
			cancel(errParent)
			return ctx
		},
		"parent cancelled, then the deadline": func(with withTimeoutCause) context.Context {
			parent, cancel := context.WithCancelCause(bg)
			ctx, _ := with(parent, time.Second, errSlow)
			cancel(errParent)
			pass(time.Second)
			return ctx
		},
		"parent cancelled before, deadline passed before": func(with withTimeoutCause) context.Context {
			parent, cancel := context.WithCancelCause(bg)
			cancel(errParent)
			ctx, _ := with(parent, -1, errSlow)
			return ctx
		},
		"deadline passed before, then the parent": func(with withTimeoutCause) context.Context {
			parent, cancel := context.WithCancelCause(bg)
			ctx, _ := with(parent, 0, errSlow)
			cancel(errParent)
			return ctx
		},
		"deadline passed before, without a cause, then the parent": func(with withTimeoutCause) context.Context {
			parent, cancel := context.WithCancelCause(bg)
			ctx, _ := with(parent, 0, nil)
			cancel(errParent)
			return ctx
		},
		"deadline passed before, parent timed out before": func(with withTimeoutCause) context.Context {
			parent, _ := with(bg, time.Second, errParent)
			pass(time.Second)
			ctx, _ := with(parent, -time.Hour, errSlow)
			return ctx
		},
		"deadline passed before, grandparent cancelled before": func(with withTimeoutCause) context.Context {
			root, cancel := context.WithCancelCause(bg)
			parent, _ := with(root, time.Hour, nil)
			cancel(errParent)
			ctx, _ := with(parent, -time.Hour, errSlow)
			return ctx
		},
		"parent's timeout after the deadline": func(with withTimeoutCause) context.Context {
			parent, _ := with(bg, 2*time.Second, errParent)
			ctx, _ := with(parent, time.Second, errSlow)
			pass(3 * time.Second)
			return ctx
		},
		"package context's timeout after the deadline": func(with withTimeoutCause) context.Context {
			parent, cancel := context.WithTimeoutCause(bg, 2*time.Second, errParent)
			ctx, _ := with(parent, time.Second, errSlow)
			pass(3 * time.Second)
			cancel()
			return ctx
		},
		"parent's timeout before the deadline": func(with withTimeoutCause) context.Context {
			parent, _ := with(bg, time.Second, errParent)
			ctx, _ := with(parent, 2*time.Second, errSlow)
			pass(3 * time.Second)
			return ctx
		},
		"value of a timeout": func(with withTimeoutCause) context.Context {
			ctx, _ := with(bg, time.Second, errSlow)
			pass(time.Second)
			return context.WithValue(ctx, key1(1), 1)
		},
		"child with a cause": func(with withTimeoutCause) context.Context {
			ctx, _ := with(bg, time.Hour, errSlow)
			child, cancel := context.WithCancelCause(ctx)
			cancel(errChild)
			return child
		},
		"parent of a child with a cause": func(with withTimeoutCause) context.Context {
			ctx, _ := with(bg, time.Hour, errSlow)
			_, cancel := context.WithCancelCause(ctx)
			cancel(errChild)
			return ctx
		},
		"child of a timeout": func(with withTimeoutCause) context.Context {
			ctx, _ := with(bg, time.Second, errSlow)
			pass(time.Second)
			child, cancel := context.WithCancel(ctx)
			cancel()
			return child
		},
		"child below a value": func(with withTimeoutCause) context.Context {
			ctx, cancel := with(context.WithValue(bg, key1(1), 1), time.Hour, errSlow)
			child := cancellable(context.WithValue(ctx, key1(1), 2))
			cancel()
			return child
		},
		"without cancel": func(with withTimeoutCause) context.Context {
			ctx, cancel := with(bg, time.Hour, errSlow)
			cancel()
			return context.WithoutCancel(ctx)
		},
		"below one without cancel": func(with withTimeoutCause) context.Context {
			parent, cancel := with(bg, time.Second, errParent)
			cancel()
			ctx, _ := with(context.WithoutCancel(parent), 2*time.Second, errSlow)
			pass(3 * time.Second)
			return ctx
		},
		"below a foreign context that is cancelled": func(with withTimeoutCause) context.Context {
			parent := newRegistering()
			ctx, _ := with(context.WithValue(parent, key1(1), 1), time.Hour, errSlow)
			parent.cancel()
			pass(0)
			return ctx
		},
		"below a foreign context that times out without a deadline": func(with withTimeoutCause) context.Context {
			parent := newUnknown()
			ctx, _ := with(cancellable(parent), time.Hour, errSlow)
			parent.cancel(context.DeadlineExceeded)
			pass(0)
			return ctx
		},
		"below a foreign context with an error of its own": func(with withTimeoutCause) context.Context {
			parent := newUnknown()
			ctx, _ := with(cancellable(parent), time.Hour, errSlow)
			parent.cancel(errParent)
			pass(0)
			return ctx
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			std := run(context.WithTimeoutCause)
			ours := run(deadline.Lazy)
			synctest.Wait()
			for range 2 { // the second time the context is armed
				require.Equal(t, context.Cause(std), context.Cause(ours), name) // one calls Err first, the other Cause
				require.Equal(t, std.Err(), ours.Err(), name)
				require.Equal(t, isClosed(std.Done()), isClosed(ours.Done()), name)
			}
			time.Sleep(2 * time.Hour) // for contexts that are not cancelled
		})
	}
}

// The parent is cancelled and the deadline passes before any method is called. The
// context reports the parent's error.
func TestContext_CancelledParentComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancelParent := context.WithCancelCause(context.Background())
		child, _ := deadline.Lazy(parent, 3*time.Second, errChild)
		grandchild, _ := deadline.Lazy(child, 2*time.Second, errSlow)
		time.Sleep(5 * time.Second)
		cancelParent(errParent)
		requireEnded(t, grandchild, context.Canceled, errParent)
		requireEnded(t, child, context.Canceled, errParent)
	})
}

func TestContext_ArmsWhenSomebodyWaits(t *testing.T) {
	bg := context.Background()
	parent, cancelParent := context.WithCancel(bg)
	defer cancelParent()
	for name, use := range map[string]func(context.Context){
		"Done":              func(ctx context.Context) { ctx.Done() },
		"AfterFunc":         func(ctx context.Context) { context.AfterFunc(ctx, func() {}) },
		"WithCancel":        func(ctx context.Context) { _, cancel := context.WithCancel(ctx); defer cancel() },
		"WithTimeout":       func(ctx context.Context) { _, cancel := context.WithTimeout(ctx, time.Hour); defer cancel() },
		"Done of a value's": func(ctx context.Context) { context.WithValue(ctx, key1(1), 1).Done() },
		"a loop of Err": func(ctx context.Context) {
			for range 100 {
				ctx.Err()
			}
		},
	} {
		ctx, cancel := deadline.WithTimeout(parent, time.Minute)
		require.False(t, deadline.Armed(ctx), name)
		use(ctx)
		require.True(t, deadline.Armed(ctx), name)
		require.NoError(t, ctx.Err())
		cancel()
		requireEnded(t, ctx, context.Canceled, context.Canceled, name)
	}
	for name, use := range map[string]func(context.Context){
		"nothing":     func(ctx context.Context) {},
		"Err":         func(ctx context.Context) { ctx.Err() },
		"Deadline":    func(ctx context.Context) { ctx.Deadline() },
		"Value":       func(ctx context.Context) { ctx.Value(key1(1)) },
		"String":      func(ctx context.Context) { _ = fmt.Sprint(ctx) },
		"a child":     func(ctx context.Context) { _, cancel := deadline.WithTimeout(ctx, time.Second); defer cancel() },
		"a later one": func(ctx context.Context) { _, cancel := deadline.WithTimeout(ctx, time.Hour); defer cancel() },
	} {
		ctx, cancel := deadline.WithTimeout(context.WithValue(parent, key1(1), 1), time.Minute)
		use(ctx)
		require.False(t, deadline.Armed(ctx), name)
		cancel()
	}
}

// The parent comes from neither package context nor this package. Its Err might wait for
// a lock that the caller holds. So the context is armed from the start.
func TestContext_BelowAForeignParent(t *testing.T) {
	for _, foreign := range []context.Context{newUnknown(), wrapped{context.Background()}, context.WithValue(newUnknown(), key1(1), 1)} {
		ctx, cancel := deadline.WithTimeout(foreign, time.Hour)
		require.True(t, deadline.Armed(ctx))
		cancel()
	}
	parent := newUnknown()
	ctx, cancel := deadline.WithTimeout(parent, time.Hour)
	child, cancelChild := deadline.WithTimeout(ctx, time.Minute)
	defer cancelChild()
	parent.mu.Lock()
	for range 100 {
		require.NoError(t, ctx.Err())
		require.NoError(t, child.Err())
	}
	child.Done()
	cancel()
	requireEnded(t, child, context.Canceled, context.Canceled)
	parent.mu.Unlock()
}

func TestContext_Deadline(t *testing.T) {
	bg := context.Background()
	wall := time.Now().Add(time.Hour).Round(0)
	ctx, cancel := deadline.WithDeadline(bg, wall)
	defer cancel()
	for range 2 {
		got, ok := ctx.Deadline()
		require.True(t, ok)
		require.Equal(t, wall, got, "the same location and wall clock")
		ctx.Done()
	}
	before := time.Now()
	later, cancelLater := deadline.WithTimeout(ctx, 2*time.Hour)
	defer cancelLater()
	got, _ := later.Deadline()
	require.Equal(t, wall, got, "the parent's deadline is earlier")
	sooner, cancelSooner := deadline.WithTimeout(ctx, time.Minute)
	defer cancelSooner()
	got, _ = sooner.Deadline()
	require.WithinRange(t, got, before.Add(time.Minute), time.Now().Add(time.Minute))
	require.False(t, deadline.Armed(later) || deadline.Armed(sooner))
	far, cancelFar := deadline.WithTimeout(bg, 1<<63-1)
	defer cancelFar()
	require.NoError(t, far.Err())
	got, ok := far.Deadline()
	require.True(t, ok)
	require.Greater(t, time.Until(got), 200*365*24*time.Hour)
	require.False(t, isClosed(far.Done()))

	parent, cancelParent := context.WithDeadline(bg, wall) // a deadline without a monotonic reading
	defer cancelParent()
	for d, want := range map[time.Duration]bool{59 * time.Minute: false, 61 * time.Minute: true} {
		child, cancelChild := deadline.WithTimeout(parent, d)
		defer cancelChild()
		got, _ := child.Deadline()
		require.Equal(t, want, got == wall, "the earlier deadline applies")
	}
}

func TestContext_Value(t *testing.T) {
	p := new(int)
	outer := context.WithValue(context.WithValue(context.Background(), key1(1), "a"), p, "p")
	idle, cancelIdle := deadline.WithTimeout(outer, time.Hour)
	defer cancelIdle()
	armed, cancelArmed := deadline.WithTimeout(outer, time.Hour)
	defer cancelArmed()
	armed.Done()
	cancelled, cancel := deadline.WithTimeout(outer, time.Hour)
	cancel()
	over, cancelOver := deadline.WithTimeout(outer, -1)
	defer cancelOver()
	for i, ctx := range []context.Context{idle, armed, cancelled, over} {
		require.Equal(t, "a", ctx.Value(key1(1)), i)
		require.Equal(t, "p", ctx.Value(p), i)
		require.Nil(t, ctx.Value(key1(2)), i)
		require.Nil(t, ctx.Value(new(int)), i)
	}
}

func TestContext_String(t *testing.T) {
	bg := context.Background()
	ctx, cancel := deadline.WithTimeout(context.WithValue(bg, key1(1), "v"), time.Hour)
	defer cancel()
	require.Regexp(t, `^context.Background.WithValue\(deadline_test.key1, v\).WithDeadline\(.* \[59m.*s\]\)$`, fmt.Sprint(ctx))
	later, cancelLater := deadline.WithTimeout(ctx, 2*time.Hour)
	defer cancelLater()
	require.True(t, strings.HasSuffix(fmt.Sprint(later), "].WithCancel") || strings.HasSuffix(fmt.Sprint(later), "]).WithCancel"), "%v", later)
}

func TestContext_NilParentPanics(t *testing.T) {
	var none context.Context
	require.Panics(t, func() { deadline.WithTimeout(none, 1) })
	require.Panics(t, func() { deadline.WithDeadlineCause(none, time.Now(), nil) })
}

func TestContext_Allocations(t *testing.T) {
	require.LessOrEqual(t, deadline.ContextSize, uintptr(64))
	bg := context.Background()
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		ctx, cancel := deadline.WithTimeout(bg, time.Hour)
		ctx.Err()
		cancel()
	}), 2.0)
}

// A context works inside a bubble and outside, wherever it was made.
func TestContext_AcrossTheBorderOfABubble(t *testing.T) {
	bg := context.Background()
	idle, cancelIdle := deadline.WithTimeout(bg, time.Hour)
	defer cancelIdle()
	waited, cancelWaited := deadline.WithTimeout(bg, time.Hour)
	defer cancelWaited()
	waited.Done()
	ask := func(t *testing.T, ctx context.Context) {
		for range 100 {
			require.NoError(t, ctx.Err())
			require.NoError(t, context.Cause(ctx))
		}
		_, ok := ctx.Deadline()
		require.True(t, ok)
		require.Nil(t, ctx.Value(key1(1)))
		require.NotEmpty(t, fmt.Sprint(ctx))
	}
	var inside context.Context
	synctest.Test(t, func(t *testing.T) {
		ask(t, waited)
		child, cancel := deadline.WithTimeout(waited, time.Second)
		defer cancel()
		<-child.Done()
		require.ErrorIs(t, child.Err(), context.DeadlineExceeded)
		late, cancelLate := deadline.WithDeadline(waited, time.Now().Add(time.Second))
		defer cancelLate()
		require.False(t, isClosed(late.Done()))

		inside, cancel = deadline.WithTimeout(bg, time.Hour)
		_ = cancel
	})
	ask(t, inside)
	other, cancelOther := deadline.WithTimeout(bg, time.Hour)
	defer cancelOther()
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, other.Err(), "the bubble's clock shows a time before the deadline")
		ask(t, idle)
	})
	ask(t, idle)
}

// In a bubble all contexts are made by package context.
func TestContext_InABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		std, cancelStd := context.WithTimeout(t.Context(), time.Second)
		defer cancelStd()
		ours, cancel := deadline.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.IsType(t, std, ours)
		<-ours.Done()
		<-std.Done()
	})
}

// A context that is dropped without cancel is garbage, unless Done was called.
func TestContext_DroppedWithoutCancel(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	defer cancel()
	type payload [1 << 10]byte
	var all []weak.Pointer[payload]
	for range 100 {
		p := new(payload)
		all = append(all, weak.Make(p))
		ctx, _ := deadline.WithTimeout(context.WithValue(parent, key1(1), p), time.Hour)
		child, _ := deadline.WithTimeout(ctx, time.Minute)
		require.NoError(t, child.Err())
	}
	runtime.GC()
	for _, w := range all {
		require.Nil(t, w.Value())
	}
	runtime.KeepAlive(parent)
}

// A parent keeps none of its many short-lived children.
func TestContext_ChildrenAreRemoved(t *testing.T) {
	parent, cancelParent := deadline.WithTimeout(context.Background(), 1000*time.Hour)
	defer cancelParent()
	const n = 10_000
	for name, child := range map[string]func(){
		"idle": func() { _, cancel := deadline.WithTimeout(parent, time.Hour); cancel() },
		"armed": func() {
			ctx, cancel := deadline.WithTimeout(parent, time.Hour)
			ctx.Done()
			cancel()
		},
		"later": func() {
			ctx, cancel := deadline.WithTimeout(parent, 2000*time.Hour)
			ctx.Done()
			cancel()
		},
		"over": func() { deadline.WithTimeout(parent, -1) },
	} {
		child()
		before := heapInUse()
		for range n {
			child()
		}
		if grown := heapInUse() - before; grown > n*40 {
			t.Errorf("%s: %d bytes are left of each of %d children", name, grown/n, n)
		}
	}
	runtime.KeepAlive(parent)
}

// If Err is not nil, Done is closed (golang/go#75533).
func TestContext_ErrDoneRace(t *testing.T) {
	for i := range 200 {
		parent, cancelParent := context.WithCancel(context.Background())
		ctx, cancel := deadline.WithTimeout(parent, time.Hour)
		switch i % 3 {
		case 0:
			go cancel()
		case 1:
			go cancelParent()
		case 2:
			go ctx.Done()
			go cancel()
		}
		for ctx.Err() == nil {
			runtime.Gosched()
		}
		requireClosed(t, ctx.Done())
		require.Equal(t, context.Canceled, context.Cause(ctx))
		cancel()
		cancelParent()
	}
}

func TestContext_SimultaneousCancels(t *testing.T) {
	for range 20 {
		root, cancel := context.WithCancel(context.Background())
		cancels := map[context.Context]context.CancelFunc{root: cancel}
		queue := []context.Context{root}
		for i := 0; len(cancels) < 100; i++ {
			parent := queue[0]
			queue = queue[1:]
			for k := range 4 {
				var ctx context.Context
				if (i+k)%3 == 0 {
					ctx, cancel = context.WithCancel(parent)
				} else {
					ctx, cancel = deadline.WithTimeout(parent, time.Hour-time.Duration(i)*time.Second)
				}
				cancels[ctx] = cancel
				queue = append(queue, ctx)
			}
		}
		var wg sync.WaitGroup
		for _, cancel := range cancels {
			wg.Go(cancel)
		}
		for ctx := range cancels {
			<-ctx.Done()
			require.Equal(t, context.Canceled, ctx.Err())
		}
		wg.Wait()
	}
}

// Contexts end in different ways, with functions of AfterFunc. Each function runs or is
// stopped. No context times out early.
func TestContext_Stress(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 3))
			for range 500 {
				stressContexts(t, rng)
			}
		})
	}
	wg.Wait()
}

func stressContexts(t *testing.T, rng *rand.Rand) {
	root, cancelRoot := context.WithCancel(context.Background())
	ctxs, cancels := []context.Context{root}, []context.CancelFunc{cancelRoot}
	var wg sync.WaitGroup
	var ran, stopped, hooks atomic.Int64
	for range 12 {
		parent := ctxs[rng.IntN(len(ctxs))]
		at := time.Now().Add(time.Duration(rng.IntN(200_000)))
		var ctx context.Context
		var cancel context.CancelFunc
		switch rng.IntN(6) {
		case 0:
			ctx, cancel = context.WithCancel(parent)
		case 1:
			ctx, cancel = deadline.WithDeadline(context.WithValue(parent, key1(1), 1), at)
		case 2:
			ctx, cancel = deadline.WithDeadline(wrapped{parent}, at)
		default:
			ctx, cancel = deadline.WithDeadline(parent, at)
		}
		ctxs, cancels = append(ctxs, ctx), append(cancels, cancel)
		look := func() error {
			err := ctx.Err()
			if err != nil && (!isClosed(ctx.Done()) || err != ctx.Err()) {
				t.Error("Err is not nil and Done is not closed, or Err has changed")
			}
			if due, _ := ctx.Deadline(); err == context.DeadlineExceeded && time.Now().Before(due) {
				t.Error("early")
			}
			return err
		}
		use := func(f func()) {
			spin := rng.IntN(5000)
			wg.Go(func() {
				for ; spin > 0; spin-- {
				}
				f()
			})
		}
		switch rng.IntN(6) {
		case 0:
			hooks.Add(1)
			stop := context.AfterFunc(ctx, func() { ran.Add(1) })
			use(func() {
				if stop() {
					stopped.Add(1)
				}
			})
		case 1:
			use(cancel)
		case 2:
			use(func() { <-ctx.Done(); look() })
		case 3, 4:
			use(func() {
				for look() == nil {
					runtime.Gosched()
				}
			})
		}
	}
	wg.Go(cancels[rng.IntN(len(cancels))])
	cancelRoot()
	wg.Wait()
	for _, ctx := range ctxs {
		<-ctx.Done()
		if err := ctx.Err(); err != context.Canceled && err != context.DeadlineExceeded || context.Cause(ctx) != err {
			t.Errorf("Err is %v, the cause %v", err, context.Cause(ctx))
		}
	}
	for ran.Load()+stopped.Load() < hooks.Load() {
		runtime.Gosched()
	}
	for _, cancel := range cancels {
		cancel()
	}
	if ran.Load()+stopped.Load() != hooks.Load() {
		t.Errorf("%d ran and %d were stopped, of %d", ran.Load(), stopped.Load(), hooks.Load())
	}
}

// An errgroup below one of our contexts ends with the context. If the group fails, the
// context does not end.
func TestContext_WithErrgroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := deadline.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		g, groupCtx := errgroup.WithContext(ctx)
		for range 10 {
			g.Go(func() error {
				<-groupCtx.Done()
				return groupCtx.Err()
			})
		}
		require.ErrorIs(t, g.Wait(), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begin))

		ctx, cancel = deadline.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		g, groupCtx = errgroup.WithContext(ctx)
		inner, cancelInner := deadline.WithTimeout(groupCtx, time.Minute)
		defer cancelInner()
		g.Go(func() error { return errSlow })
		require.ErrorIs(t, g.Wait(), errSlow)
		<-inner.Done()
		require.Equal(t, errSlow, context.Cause(inner))
		require.NoError(t, ctx.Err())
	})
}
