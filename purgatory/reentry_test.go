package purgatory_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/purgatory"
)

// A TryComplete that calls a method of its own operation would wait for itself. So it
// panics, however deep in the stack the call is.
func TestTryComplete_AsksForItself(t *testing.T) {
	for name, call := range map[string]func(*purgatory.Purgatory[string], *op){
		"ForceComplete":    func(_ *purgatory.Purgatory[string], o *op) { o.ForceComplete() },
		"CheckAndComplete": func(p *purgatory.Purgatory[string], _ *op) { p.CheckAndComplete("a") },
		"CancelForKey":     func(p *purgatory.Purgatory[string], _ *op) { p.CancelForKey("a") },
		"CompleteOrWatch":  func(p *purgatory.Purgatory[string], o *op) { p.CompleteOrWatch(o, time.Hour, "b") },
		"Close":            func(p *purgatory.Purgatory[string], _ *op) { p.Close() },
		"Shutdown":         func(p *purgatory.Purgatory[string], _ *op) { p.Shutdown(context.Background()) },
		"through another's OnComplete": func(p *purgatory.Purgatory[string], o *op) {
			other := &op{onComplete: func() { o.ForceComplete() }}
			other.ready.Store(true)
			p.CompleteOrWatch(other, time.Hour, "c")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ps panics
			p, s, _ := virtual(t, ps.option())
			first := watch(t, p, new(op), time.Hour, "a")
			o := watch(t, p, new(op), time.Hour, "a", "own")
			o.try = func() bool {
				deep(100, func() { call(p, o) })
				t.Error("the call returned instead of panicking")
				return false
			}
			require.Zero(t, p.CheckAndComplete("own"))
			require.Len(t, ps.values, 1)
			require.True(t, strings.HasPrefix(ps.values[0].(string), "purgatory: TryComplete waits for an operation's lock"), ps.values[0])
			require.False(t, o.IsCompleted())
			require.Equal(t, 2, p.Len(), "both operations still wait")
			watch(t, p, new(op), time.Hour, "late").ForceComplete() // the purgatory is not closed
			o.try = nil
			require.True(t, o.ForceComplete(), "the operation's lock is free")
			first.ForceComplete()
			empty(t, p, s)
		})
	}
}

func deep(n int, f func()) {
	if n > 0 {
		deep(n-1, f)
		return
	}
	f()
}

// TryComplete may call these methods.
func TestTryComplete_MayLook(t *testing.T) {
	p, s, _ := virtual(t)
	o := new(op)
	o.try = func() bool {
		return o.IsCompleted() || p.Len()+p.Watched()+p.Stats().Keys < 0
	}
	watch(t, p, o, time.Hour, "a")
	require.Zero(t, p.CheckAndComplete("a"))
	require.True(t, o.ForceComplete())
	empty(t, p, s)
}

// CancelForKey panics inside TryComplete, even if no operation waits for the key.
func TestTryComplete_CancelsForAKeyOfNobody(t *testing.T) {
	var ps panics
	p, s, _ := virtual(t, ps.option())
	o := new(op)
	watch(t, p, o, time.Hour, "a")
	o.try = func() bool {
		p.CancelForKey("nobody's")
		t.Error("the call returned instead of panicking")
		return false
	}
	require.Zero(t, p.CheckAndComplete("a"))
	require.Len(t, ps.values, 1)
	o.try = nil
	require.True(t, o.ForceComplete())
	empty(t, p, s)
}
