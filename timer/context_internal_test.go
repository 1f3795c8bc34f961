package timer

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// refusing is an executor that takes nothing.
type refusing struct{ t *testing.T }

func (e refusing) Submit(func()) error {
	e.t.Error("a context's end was handed to the executor")
	return context.Canceled
}

func (e refusing) SubmitBatch([]func()) (int, error) { return 0, e.Submit(nil) }
func (e refusing) Shutdown(context.Context) error    { return nil }

// A context does not wait behind callbacks: its end never goes to the executor, the
// Scheduler's own one neither.
func TestContext_ExpiresBesideTheExecutor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.dispatch.exec = refusing{t}
		ctx, cancel := s.WithTimeout(context.Background(), time.Second)
		defer cancel()
		child, cancelChild := context.WithCancel(ctx)
		defer cancelChild()
		ours, cancelOurs := s.WithTimeout(ctx, time.Hour)
		defer cancelOurs()
		time.Sleep(time.Second)
		synctest.Wait()
		for _, c := range []context.Context{ctx, child, ours} {
			<-c.Done()
			require.Equal(t, context.DeadlineExceeded, c.Err())
		}
		s.Close()
	})
}

// A million of them that nobody waits for take 80 MB, and 16 for their cancels.
func TestContext_IsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.LessOrEqual(t, int(unsafe.Sizeof(deadlineCtx{})), 80)
		require.LessOrEqual(t, int(unsafe.Sizeof(ctxMore{})), 112)
	}
}

// The types of package context's contexts are known, and how its contexts are told
// of their parents' end: this fails if a new version of Go changes what that is
// learnt from. Then it still works, but costs more.
func TestContext_KindsOfParents(t *testing.T) {
	k := stdKinds()
	bg := context.Background()
	std, cancel := context.WithCancel(bg)
	defer cancel()
	timed, cancelTimed := context.WithTimeout(bg, time.Hour)
	defer cancelTimed()
	s := New()
	defer s.Close()
	ours, cancelOurs := s.WithTimeout(bg, time.Hour)
	defer cancelOurs()
	value := func(ctx context.Context) context.Context {
		return context.WithValue(context.WithValue(ctx, contextKey{}, 1), contextKey{}, 2)
	}
	for _, c := range []struct {
		ctx, near context.Context
		kind      ctxKind
	}{
		{bg, nil, ctxAlone},
		{context.TODO(), nil, ctxAlone},
		{value(bg), nil, ctxAlone},
		{context.WithoutCancel(std), nil, ctxAlone},
		{std, std, ctxUnderStd},
		{timed, timed, ctxUnderStd},
		{value(timed), timed, ctxUnderStd},
		{ours, ours, ctxUnderOurs},
		{value(ours), ours, ctxUnderOurs},
		{struct{ context.Context }{ours}, struct{ context.Context }{ours}, ctxUnderOther},
		{value(struct{ context.Context }{ours}), struct{ context.Context }{ours}, ctxUnderOther},
	} {
		near, kind := k.nearest(c.ctx)
		require.Equal(t, c.kind, kind, "%v", c.ctx)
		require.Equal(t, c.near, near, "%v", c.ctx)
	}
	require.NotNil(t, k.causeKey)
	require.NotZero(t, k.cancelFunc)
}

// A context that is cancelled while it starts to wait leaves the group that it has
// just made registered, if another has joined that meanwhile.
func TestContext_CancelledWhileItStartsToWait(t *testing.T) {
	for _, alone := range []bool{false, true} {
		s := New(WithShards(1))
		parent, cancelParent := context.WithTimeout(context.Background(), time.Hour)
		first, cancelFirst := s.WithTimeout(parent, time.Minute)
		second, cancelSecond := s.WithTimeout(parent, 2*time.Hour) // it needs no timer
		sh := s.shards.at(0)
		key := chanAddress(parent.Done())
		stripe := s.ctxs.stripe(key)

		sh.mu.Lock()
		stripe.mu.Lock()
		armed := make(chan struct{})
		go func() {
			first.(*deadlineCtx).arm()
			close(armed)
		}()
		await := func(locked *sync.Mutex, ok func() bool) {
			locked.Lock()
			for !ok() {
				locked.Unlock()
				runtime.Gosched()
				locked.Lock()
			}
		}
		// It holds its lock, and is about to start its timer.
		for first.(*deadlineCtx).mu.TryLock() {
			first.(*deadlineCtx).mu.Unlock()
			runtime.Gosched()
		}
		cancelFirst()
		sh.mu.Unlock()
		await(&sh.mu, func() bool { return sh.wheel.Len() == 1 })
		// It is about to join a group, and then to stop its timer.
		stripe.mu.Unlock()
		await(&stripe.mu, func() bool { return stripe.slots[key] != nil })
		stripe.mu.Unlock()
		var done <-chan struct{}
		if !alone {
			done = second.Done()
		}
		sh.mu.Unlock()
		<-armed
		stripe.mu.Lock()
		if slot := stripe.slots[key]; alone {
			require.Nil(t, slot)
		} else {
			require.NotNil(t, slot.group.stop, "nobody tells the other one")
		}
		stripe.mu.Unlock()
		cancelParent()
		if !alone {
			<-done
		}
		require.Equal(t, context.Canceled, first.Err())
		require.Equal(t, context.Canceled, second.Err())
		cancelSecond()
		require.Zero(t, s.Len())
		s.Close()
	}
}
