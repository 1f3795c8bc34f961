package timer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// FuzzContexts makes the same tree of contexts twice, once with package context
// alone and once with contexts of ours for some of those with a deadline, and does
// the same to both: what they report must be the same at every step.
//
// All deadlines differ, so that which comes first is settled. One case is left out,
// because it cannot be known: that a parent of package context's ended, and after or
// before it the deadline passed, and nobody looked in between. So everything is
// looked at, or waited for, before time goes on; what is drawn is by whom.
func FuzzContexts(f *testing.F) {
	f.Add([]byte{0, 10, 1, 20, 2, 30, 9, 1, 8, 5, 3, 1, 9, 9})
	f.Add([]byte("contexts of both kinds, up and down the tree, with causes"))
	for seed := range byte(20) {
		ops := make([]byte, 120)
		for i := range ops {
			ops[i] = byte(i*i)*7 + seed*byte(31*i) + byte(i)>>3
		}
		f.Add(ops)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 400 {
			t.Skip()
		}
		synctest.Test(t, func(t *testing.T) { compareTrees(t, ops) })
	})
}

// twin is a context and its double of package context's.
type twin struct {
	ctx, std             context.Context
	cancel, cancelStd    context.CancelCauseFunc
	stop, stopStd        func() bool
	ran, ranStd          *atomic.Int32
	done                 <-chan struct{}
	waited, afterFuncSet bool
}

type twinKey int

func compareTrees(t *testing.T, ops []byte) {
	s := timer.New()
	defer s.Close()
	root, cancelRoot := context.WithCancelCause(context.Background())
	rootStd, cancelRootStd := context.WithCancelCause(context.Background())
	twins := []*twin{{ctx: root, std: rootStd, cancel: cancelRoot, cancelStd: cancelRootStd, ran: new(atomic.Int32), ranStd: new(atomic.Int32)}}
	defer func() {
		for _, w := range twins {
			if w.cancel != nil {
				w.cancel(nil)
				w.cancelStd(nil)
			}
		}
	}()
	plain := func(cancel context.CancelFunc) context.CancelCauseFunc { return func(error) { cancel() } }
	next := func() int {
		if len(ops) == 0 {
			return 0
		}
		b := ops[0]
		ops = ops[1:]
		return int(b)
	}
	for step := 0; len(ops) > 0; step++ {
		op, arg := next(), next()
		w := twins[arg%len(twins)]
		cause := fmt.Errorf("cause %d", step)
		// No two deadlines are the same, and none is a moment at which time stops.
		d := time.Duration(arg%50)*time.Second + time.Duration(step+1)*time.Microsecond
		child := &twin{}
		switch op % 12 {
		case 0, 1:
			ctx, cancel := s.WithTimeout(w.ctx, d)
			std, cancelStd := context.WithTimeout(w.std, d)
			*child = twin{ctx: ctx, std: std, cancel: plain(cancel), cancelStd: plain(cancelStd)}
		case 2:
			ctx, cancel := s.WithTimeoutCause(w.ctx, d, cause)
			std, cancelStd := context.WithTimeoutCause(w.std, d, cause)
			*child = twin{ctx: ctx, std: std, cancel: plain(cancel), cancelStd: plain(cancelStd)}
		case 3:
			ctx, cancel := context.WithTimeoutCause(w.ctx, d, cause)
			std, cancelStd := context.WithTimeoutCause(w.std, d, cause)
			*child = twin{ctx: ctx, std: std, cancel: plain(cancel), cancelStd: plain(cancelStd)}
		case 4:
			ctx, cancel := context.WithCancelCause(w.ctx)
			std, cancelStd := context.WithCancelCause(w.std)
			*child = twin{ctx: ctx, std: std, cancel: cancel, cancelStd: cancelStd}
		case 5:
			*child = twin{ctx: context.WithValue(w.ctx, twinKey(step), step), std: context.WithValue(w.std, twinKey(step), step)}
		case 6:
			*child = twin{ctx: wrapped{w.ctx}, std: wrapped{w.std}}
		case 7:
			if w.cancel != nil {
				w.cancel(cause)
				w.cancelStd(cause)
			}
		case 8:
			if !w.waited {
				w.waited, w.done = true, w.ctx.Done()
			}
		case 9:
			if !w.afterFuncSet {
				w.afterFuncSet = true
				w.stop = context.AfterFunc(w.ctx, func() { w.ran.Inc() })
				w.stopStd = context.AfterFunc(w.std, func() { w.ranStd.Inc() })
			}
		case 10:
			if w.stop != nil {
				// Who has ended is told on a goroutine, which may come after.
				synctest.Wait()
				require.Equal(t, w.stopStd(), w.stop(), "step %d: stop", step)
			}
		default:
			for _, w := range twins {
				w.ctx.Err() // whoever is not waited for is looked at
			}
			time.Sleep(time.Duration(arg%20) * 500 * time.Millisecond)
		}
		if child.ctx != nil && len(twins) < 60 {
			child.ran, child.ranStd = new(atomic.Int32), new(atomic.Int32)
			twins = append(twins, child)
		} else if child.cancel != nil {
			child.cancel(nil)
			child.cancelStd(nil)
		}
		synctest.Wait()
		for _, w := range twins {
			w.ctx.Err() // which may end it, and so have functions run
		}
		synctest.Wait()
		for i, w := range twins {
			require.Equal(t, w.std.Err(), w.ctx.Err(), "step %d: Err of %d: %v", step, i, w.ctx)
			require.Equal(t, context.Cause(w.std), context.Cause(w.ctx), "step %d: Cause of %d: %v", step, i, w.ctx)
			require.Equal(t, w.ranStd.Load(), w.ran.Load(), "step %d: AfterFunc of %d", step, i)
			if w.waited {
				select {
				case <-w.done:
					require.Error(t, w.std.Err(), "step %d: Done of %d", step, i)
				default:
					require.NoError(t, w.std.Err(), "step %d: Done of %d", step, i)
				}
			}
			a, ok := w.ctx.Deadline()
			b, okStd := w.std.Deadline()
			require.True(t, a.Equal(b) && ok == okStd, "step %d: Deadline of %d", step, i)
			for key := range step {
				require.Equal(t, w.std.Value(twinKey(key)), w.ctx.Value(twinKey(key)))
			}
			if err := w.ctx.Err(); err != nil {
				require.True(t, errors.Is(err, w.std.Err()))
			}
		}
	}
}
