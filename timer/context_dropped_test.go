package timer

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
)

// A context that nobody waits for and that is dropped without cancel is garbage at
// once, whatever its parent, which stays; it leaves neither timer nor registration.
func TestContext_DroppedWithoutCancel(t *testing.T) {
	s := New()
	defer s.Close()
	bg := context.Background()
	value := func(ctx context.Context) context.Context { return context.WithValue(ctx, contextKey{}, 1) }
	std, cancelStd := context.WithCancel(bg)
	defer cancelStd()
	timed, cancelTimed := context.WithTimeout(bg, time.Hour)
	defer cancelTimed()
	idle, cancelIdle := s.WithTimeout(std, time.Hour)
	defer cancelIdle()
	waiting, cancelWaiting := s.WithTimeout(bg, time.Hour)
	defer cancelWaiting()
	waiting.Done()
	for name, parent := range map[string]context.Context{
		"background":             bg,
		"without cancel":         context.WithoutCancel(std),
		"cancellable":            std,
		"timed":                  timed,
		"value of a cancellable": value(std),
		"ours, idle":             idle,
		"ours, waiting":          waiting,
		"value of ours":          value(idle),
	} {
		t.Run(name, func(t *testing.T) {
			var dropped []weak.Pointer[deadlineCtx]
			for i := range 100 {
				ctx, _ := s.WithTimeoutCause(parent, time.Minute, context.Canceled)
				child, _ := s.WithTimeout(ctx, time.Second)
				for range i % (looksToArm - 1) {
					require.NoError(t, child.Err())
					require.NoError(t, ctx.Err())
				}
				require.NoError(t, context.Cause(child))
				dropped = append(dropped, weak.Make(ctx.(*deadlineCtx)), weak.Make(child.(*deadlineCtx)))
			}
			require.Equal(t, 1, s.Len(), "the waiting one's")
			runtime.GC()
			for _, w := range dropped {
				require.Nil(t, w.Value())
			}
			require.Zero(t, s.Registrations())
			runtime.KeepAlive(parent)
		})
	}
	require.Nil(t, waiting.(*deadlineCtx).more.Load().hooks)
	require.Equal(t, uint32(ctxIdle), idle.(*deadlineCtx).phase())
}

// Registrations returns how many parents of other kinds the Scheduler is registered
// with, or was and has not noticed yet that they are gone.
func (s *Scheduler) Registrations() int {
	n := 0
	for i := range s.ctxs.stripes {
		in := &s.ctxs.stripes[i]
		in.mu.Lock()
		n += len(in.slots)
		in.mu.Unlock()
	}
	return n
}

// One that waits, because it was asked to or because its parent is of another kind,
// is garbage once its deadline has passed.
func TestContext_DroppedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		defer s.Close()
		std, cancelStd := context.WithCancel(context.Background())
		defer cancelStd()
		inner, cancelInner := context.WithCancel(context.Background())
		defer cancelInner()
		for _, parent := range []context.Context{context.Background(), std, struct{ context.Context }{inner}} {
			var dropped []weak.Pointer[deadlineCtx]
			for range 100 {
				ctx, _ := s.WithTimeout(parent, time.Minute)
				ctx.Done()
				dropped = append(dropped, weak.Make(ctx.(*deadlineCtx)))
			}
			require.Equal(t, 100, s.Len())
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Zero(t, s.Len())
			runtime.GC()
			for _, w := range dropped {
				require.Nil(t, w.Value())
			}
			require.Zero(t, s.Registrations())
		}
		runtime.KeepAlive([]any{std, inner})
	})
}

// What leads from parents to contexts takes no memory once these are gone, and little
// when few are left.
func TestContext_ParentsAfterAPeak(t *testing.T) {
	for _, left := range []int{0, 40} {
		s := New()
		const n = 100_000
		cancels := make([]func(), 0, 2*n)
		for range n {
			p, cancelParent := context.WithCancel(context.Background())
			c, cancel := s.WithTimeout(p, time.Hour)
			c.Done()
			cancels = append(cancels, cancel, cancelParent)
		}
		for _, f := range cancels[2*left:] {
			f()
		}
		require.Eventually(t, func() bool { return s.Registrations() == left }, time.Minute, time.Millisecond)
		with := heapInUse()
		for i := range s.ctxs.stripes {
			s.ctxs.stripes[i].mu.Lock()
			s.ctxs.stripes[i].slots = nil
			s.ctxs.stripes[i].mu.Unlock()
		}
		require.Less(t, with-heapInUse(), 200e3, "bytes of maps, %d parents are left", left)
		for _, f := range cancels[:2*left] {
			f()
		}
		s.Close()
	}
}

// Parents that are garbage, and were never done, leave nothing behind once the Scheduler
// is quiet.
func TestContext_ParentsThatAreGarbage(t *testing.T) {
	s := New()
	defer s.Close()
	for range 20 {
		p, cancelParent := context.WithCancel(context.Background())
		for range 3 { // from the second on the registration stays
			c, cancel := s.WithTimeout(p, time.Hour)
			c.Done()
			cancel()
		}
		_ = cancelParent
	}
	require.Positive(t, s.Registrations())
	require.Eventually(t, func() bool {
		runtime.GC()
		s.trim.mu.Lock()
		s.trim.passLocked()
		s.trim.mu.Unlock()
		return s.Registrations() == 0
	}, time.Minute, time.Millisecond)
}
