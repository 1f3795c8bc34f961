package keyed

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"
)

// A loading is a call of load in GetOrLoad. While it is in its stripe's loads, more
// callers join it, and its value will be stored.
type loading struct {
	group   singleflight.Group // of one key
	ctx     context.Context    // load's
	cancel  context.CancelFunc
	callers int // that wait. Guarded by the stripe's lock.
}

// A loaded is what load returned, or the value it panicked with.
type loaded[V any] struct {
	value    V
	err      error
	panicked any
}

// GetOrLoad returns the value of key. If the key is not pending, GetOrLoad calls load,
// and sets the key to its value, with a deadline d after load returns. Callers that wait
// for the same key share one call of load. Each waits until load returns or its own ctx
// is done, and then returns ctx.Err().
//
// load runs on a goroutine of its own. Its context has the values of the first caller's,
// and ends when no caller waits any longer. If load returns an error or panics, all
// callers return the error or panic, and nothing is stored. load must not call
// [runtime.Goexit].
//
// If Set, SetIfAbsent or Swap changes the key meanwhile, or Remove is called for it,
// callers get the loaded value, but it is not stored: it may be outdated. If the
// Scheduler is closed or full, GetOrLoad returns both the value and the error of Set.
func (k *Timers[K, V]) GetOrLoad(ctx context.Context, key K, d time.Duration, load func(context.Context) (V, error)) (value V, err error) {
	if ctx == nil || load == nil {
		panic("keyed: GetOrLoad with a nil Context or func")
	}
	now := k.nanosSinceStart()
	st := k.stripeOf(key)
	st.mu.Lock()
	if e, exists := st.entries[key]; exists && e.isPending(now) {
		st.mu.Unlock()
		return e.value, nil
	}
	l := st.loads[key]
	if l == nil {
		l = new(loading)
		l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if st.loads == nil {
			st.loads = make(map[K]*loading)
		}
		st.loads[key] = l
	}
	l.callers++
	result := l.group.DoChan("", func() (any, error) { return k.load(st, l, key, d, load), nil })
	st.mu.Unlock()

	defer func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		if l.callers--; l.callers == 0 {
			l.cancel()
			st.forgetLocked(key, l)
		}
	}()
	select {
	case r := <-result:
		got := r.Val.(loaded[V])
		if got.panicked != nil {
			panic(got.panicked)
		}
		return got.value, got.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// load calls f, and stores its value if l is still the key's load.
func (k *Timers[K, V]) load(st *stripe[K, V], l *loading, key K, d time.Duration, f func(context.Context) (V, error)) (got loaded[V]) {
	defer func() {
		got.panicked = recover()
		now := k.nanosSinceStart()
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.forgetLocked(key, l) && got.err == nil && got.panicked == nil {
			got.err = k.addLocked(st, now, key, got.value, d)
		}
	}()
	got.err = errGoexit
	got.value, got.err = f(l.ctx)
	return got
}

// errGoexit is the result of a load that does not return.
var errGoexit = errors.New("keyed: load called runtime.Goexit")

// forgetLocked removes l from the running loads. It reports false if l is not there.
func (st *stripe[K, V]) forgetLocked(key K, l *loading) bool {
	if st.loads[key] != l {
		return false
	}
	if delete(st.loads, key); len(st.loads) == 0 {
		st.loads = nil
	}
	return true
}
