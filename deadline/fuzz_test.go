package deadline_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/deadline"
)

// FuzzContexts builds a tree of contexts twice: with package context, and with this
// package. It applies the same operations to both trees and compares the contexts.
//
// The trees may differ in one case: a context's deadline passes while no code uses the
// context, and then its parent is cancelled. So the test compares all contexts, which uses
// them, before it cancels such a parent.
func FuzzContexts(f *testing.F) {
	f.Add([]byte{0, 10, 1, 20, 2, 30, 9, 1, 8, 5, 3, 1, 9, 9})
	f.Add([]byte{0, 20, 0, 11, 13, 19, 7, 1})        // a child's deadline passes, its parent is cancelled
	f.Add([]byte{0, 20, 13, 19, 13, 19, 7, 1, 0, 3}) // cancelled after its deadline
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
		synctest.Test(t, func(t *testing.T) { (&twinTrees{t: t}).run(ops) })
	})
}

// A twin is a context of this package and its counterpart of package context.
type twin struct {
	ctx, std             context.Context
	cancel, cancelStd    context.CancelCauseFunc
	stop, stopStd        func() bool
	ran, ranStd          *atomic.Int32
	done                 <-chan struct{}
	waited, afterFuncSet bool
	keys                 []twinKey // the keys that have a value
	parent               *twin
}

// isBelow reports whether w is ancestor, or derived from it.
func (w *twin) isBelow(ancestor *twin) bool {
	for ; w != nil; w = w.parent {
		if w == ancestor {
			return true
		}
	}
	return false
}

type twinKey int

type twinTrees struct {
	t     *testing.T
	twins []*twin
	step  int
}

func (tt *twinTrees) run(ops []byte) {
	root, cancelRoot := context.WithCancelCause(context.Background())
	rootStd, cancelRootStd := context.WithCancelCause(context.Background())
	tt.add(twin{ctx: root, std: rootStd, cancel: cancelRoot, cancelStd: cancelRootStd}, nil)
	for ; len(ops) > 1; ops = ops[2:] {
		w := tt.twins[int(ops[1])%len(tt.twins)]
		if child, key := tt.derive(w, int(ops[0]%16), int(ops[1])); child.ctx != nil {
			child.parent = w
			if _, root := child.ctx.(*unknown); !root {
				key = append(slices.Clip(w.keys), key...)
			}
			tt.add(child, key)
		} else {
			tt.do(w, int(ops[0]%16), int(ops[1]))
		}
		synctest.Wait()
		tt.step++
	}
	tt.compareAll()
	for _, w := range tt.twins {
		if w.cancel != nil {
			w.cancel(context.Canceled)
			w.cancelStd(context.Canceled)
		}
	}
	tt.compareAll()
	// The bubble fails the test if a goroutine is still running.
}

func (tt *twinTrees) add(w twin, keys []twinKey) {
	if len(tt.twins) == 60 {
		if w.cancel != nil {
			w.cancel(context.Canceled)
			w.cancelStd(context.Canceled)
		}
		return
	}
	w.ran, w.ranStd, w.keys = new(atomic.Int32), new(atomic.Int32), keys
	tt.twins = append(tt.twins, &w)
}

// derive makes a child of w if op is less than 7. Otherwise child is empty.
func (tt *twinTrees) derive(w *twin, op, arg int) (child twin, key []twinKey) {
	cause := fmt.Errorf("cause %d", tt.step)
	if op == 2 && arg%4 == 0 {
		cause = nil
	}
	// No two future deadlines are equal, and none is at a moment at which the test
	// compares contexts.
	d := time.Duration(arg%50-5)*time.Second + time.Duration(tt.step+1)*time.Microsecond
	plain := func(cancel context.CancelFunc) context.CancelCauseFunc { return func(error) { cancel() } }
	timeout := func(ctx context.Context, cancel context.CancelFunc) {
		std, cancelStd := context.WithTimeoutCause(w.std, d, cause)
		child = twin{ctx: ctx, std: std, cancel: plain(cancel), cancelStd: plain(cancelStd)}
	}
	switch op {
	case 0, 1, 2:
		timeout(deadline.Lazy(w.ctx, d, cause))
	case 3:
		timeout(context.WithTimeoutCause(w.ctx, d, cause))
	case 4:
		child.ctx, child.cancel = context.WithCancelCause(w.ctx)
		child.std, child.cancelStd = context.WithCancelCause(w.std)
	case 5:
		k := twinKey(tt.step)
		child.ctx, child.std = context.WithValue(w.ctx, k, tt.step), context.WithValue(w.std, k, tt.step)
		key = []twinKey{k}
	case 6:
		switch arg % 3 {
		case 0:
			child.ctx, child.std = wrapped{w.ctx}, wrapped{w.std}
		case 1:
			child.ctx, child.std = context.WithoutCancel(w.ctx), context.WithoutCancel(w.std)
		case 2: // a foreign root, which ends with an error of its own
			foreign, std := newUnknown(), newUnknown()
			child = twin{ctx: foreign, std: std, cancel: foreign.cancel, cancelStd: std.cancel}
		}
	}
	return child, key
}

// do applies operation op to w.
func (tt *twinTrees) do(w *twin, op, arg int) {
	switch op {
	case 7:
		if w.cancel != nil {
			if slices.ContainsFunc(tt.twins, func(below *twin) bool { return below != w && below.isBelow(w) && below.std.Err() != nil }) {
				tt.compareAll()
			}
			cause := fmt.Errorf("cause %d", tt.step)
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
			w.stop = context.AfterFunc(w.ctx, func() { w.ran.Add(1) })
			w.stopStd = context.AfterFunc(w.std, func() { w.ranStd.Add(1) })
		}
	case 10:
		if w.stop != nil {
			require.Equal(tt.t, w.stopStd(), w.stop(), "step %d: stop", tt.step)
		}
	case 11:
		tt.compareAll()
	case 12:
		tt.compare(w)
	default:
		time.Sleep(time.Duration(arg%20) * 500 * time.Millisecond)
	}
}

func (tt *twinTrees) compareAll() {
	for _, w := range tt.twins {
		tt.compare(w)
	}
	synctest.Wait()
	for _, w := range tt.twins {
		tt.compare(w) // this may have run functions of AfterFunc
	}
}

func (tt *twinTrees) compare(w *twin) {
	w.ctx.Err() // this may end w, and run functions of AfterFunc
	if w.afterFuncSet {
		synctest.Wait()
	}
	if diff := w.differs(); diff != "" {
		tt.t.Fatalf("step %d: %v: %s", tt.step, w.ctx, diff)
	}
}

// differs describes the first difference between the contexts of w, or returns "". It
// does not use package require, which inspects the stack in each call.
func (w *twin) differs() string {
	err, std := w.ctx.Err(), w.std.Err()
	if err != std {
		return fmt.Sprintf("Err is %v, not %v", err, std)
	}
	if cause, std := context.Cause(w.ctx), context.Cause(w.std); cause != std {
		return fmt.Sprintf("Cause is %v, not %v", cause, std)
	}
	if ran, std := w.ran.Load(), w.ranStd.Load(); ran != std {
		return fmt.Sprintf("the function of AfterFunc ran %d times, not %d", ran, std)
	}
	if w.waited && isClosed(w.done) != (std != nil) {
		return fmt.Sprintf("Done is closed: %t, Err is %v", isClosed(w.done), std)
	}
	at, ok := w.ctx.Deadline()
	if atStd, okStd := w.std.Deadline(); ok != okStd || !at.Equal(atStd) {
		return fmt.Sprintf("Deadline is %v, %t, not %v, %t", at, ok, atStd, okStd)
	}
	for _, key := range w.keys {
		if v := w.ctx.Value(key); v != int(key) {
			return fmt.Sprintf("Value(%d) is %v", key, v)
		}
	}
	if v := w.ctx.Value(twinKey(-1)); v != nil {
		return fmt.Sprintf("Value of a key that was never set is %v", v)
	}
	return ""
}
