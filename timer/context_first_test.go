package timer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// with is context.WithTimeoutCause, or a Scheduler's.
type with func(context.Context, time.Duration, error) (context.Context, context.CancelFunc)

// A deadline that has passed when it is set comes after the end of a parent that is
// done by then, whether anybody has looked at that or not: as package context has it.
func TestContext_PastDeadlineUnderOneThatIsDone(t *testing.T) {
	bg := context.Background()
	for name, done := range map[string]func(with) context.Context{
		"cancelled": func(with with) context.Context {
			ctx, cancel := with(bg, time.Hour, errParent)
			cancel()
			return ctx
		},
		"cancelled, with a child": func(with with) context.Context {
			ctx, cancel := with(bg, time.Hour, errParent)
			_, cancelChild := with(ctx, time.Minute, nil)
			cancelChild()
			cancel()
			return ctx
		},
		"cancelled, somebody waits": func(with with) context.Context {
			ctx, cancel := with(bg, time.Hour, errParent)
			ctx.Done()
			cancel()
			return ctx
		},
		"timed out": func(with with) context.Context {
			ctx, _ := with(bg, time.Second, errParent)
			time.Sleep(time.Second)
			synctest.Wait()
			return ctx
		},
		"under one that was cancelled": func(with with) context.Context {
			parent, cancel := context.WithCancelCause(bg)
			ctx, _ := with(parent, time.Hour, nil)
			cancel(errParent)
			return ctx
		},
		"under one that timed out": func(with with) context.Context {
			parent, cancel := context.WithTimeoutCause(bg, time.Second, errParent)
			ctx, _ := with(parent, time.Hour, nil)
			time.Sleep(time.Second)
			synctest.Wait()
			cancel()
			return ctx
		},
		"of package context, timed out": func(with) context.Context {
			ctx, cancel := context.WithTimeoutCause(bg, time.Second, errParent)
			time.Sleep(time.Second)
			synctest.Wait()
			cancel()
			return context.WithValue(ctx, key1(1), 1)
		},
		"of package context, cancelled": func(with) context.Context {
			ctx, cancel := context.WithCancelCause(bg)
			cancel(errParent)
			return ctx
		},
		"of another kind": func(with) context.Context {
			ctx, cancel := context.WithCancelCause(bg)
			cancel(errParent)
			return wrapped{ctx}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := timer.New()
			defer s.Close()
			time.Sleep(time.Minute)
			for _, d := range []time.Duration{0, -time.Nanosecond, -2 * time.Second, -time.Hour, -1 << 63} {
				ctx, cancel := s.WithTimeoutCause(done(s.WithTimeoutCause), d, errChild)
				std, cancelStd := context.WithTimeoutCause(done(context.WithTimeoutCause), d, errChild)
				synctest.Wait()
				require.Equal(t, std.Err(), ctx.Err(), "%s: %v", name, d)
				require.Equal(t, context.Cause(std), context.Cause(ctx), "%s: %v", name, d)
				requireClosed(t, ctx.Done())
				cancel()
				cancelStd()
			}
			require.Zero(t, s.Len())
		})
	}
}

// Where a parent of package context's was cancelled and a deadline passed before
// anybody looked, the parent's end counts, for all that are below it.
func TestContext_CancelledParentComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		defer s.Close()
		parent, cancelParent := context.WithCancelCause(context.Background())
		child, cancelChild := s.WithTimeoutCause(parent, 3*time.Second, errChild)
		defer cancelChild()
		grandchild, cancelGrandchild := s.WithTimeoutCause(child, 2*time.Second, errSlow)
		defer cancelGrandchild()
		cancelParent(errParent)
		time.Sleep(5 * time.Second)
		for _, ctx := range []context.Context{grandchild, child} {
			requireDone(t, ctx, context.Canceled, "nobody had looked")
			require.Equal(t, errParent, context.Cause(ctx))
		}
		// If that was a timeout too, it came after.
		timed, cancelTimed := context.WithTimeoutCause(context.Background(), 4*time.Second, errParent)
		defer cancelTimed()
		child, cancelChild = s.WithTimeoutCause(timed, 3*time.Second, errChild)
		defer cancelChild()
		grandchild, cancelGrandchild = s.WithTimeoutCause(child, 2*time.Second, errSlow)
		defer cancelGrandchild()
		time.Sleep(5 * time.Second)
		requireDone(t, grandchild, context.DeadlineExceeded, "timed out")
		require.Equal(t, errSlow, context.Cause(grandchild))
		require.Equal(t, errChild, context.Cause(child))
	})
}

// A parent that is done and has no error counts as cancelled.
func TestContext_ParentWithoutAnError(t *testing.T) {
	s, _ := virtual(t)
	parent := newUnknown()
	close(parent.done)
	ctx, cancel := s.WithTimeout(parent, time.Hour)
	defer cancel()
	requireDone(t, ctx, context.Canceled, "no error")
	require.Equal(t, context.Canceled, context.Cause(ctx))
	require.Zero(t, s.Len())
}
