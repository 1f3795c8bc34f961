package timingwheel_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/timingwheel"
)

// The package's methods against a map. (What is below has a model test of its own, in
// internal/wheel.)
func TestWheel_AgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	type entry struct {
		id              timingwheel.ID
		deadline, slack int64
	}
	w, err := timingwheel.New[int](1, 4, 0)
	require.NoError(t, err)
	entries := map[int]*entry{}
	now := int64(0)
	out := make([]timingwheel.Expired[int], 3)
	var gone []timingwheel.ID
	for step := range 20_000 {
		v := -1
		for v = range entries {
			break
		}
		deadline, slack := now+rng.Int64N(300)-5, rng.Int64N(20)
		switch op := rng.IntN(8); {
		case op < 3 || v < 0:
			var id timingwheel.ID
			var ok bool
			if op == 0 {
				slack = 0
				id, ok = w.Add(deadline, step)
			} else {
				id, ok = w.AddWithin(deadline, slack, step)
			}
			if ok {
				entries[step] = &entry{id, deadline, slack}
			} else {
				require.LessOrEqual(t, deadline, now)
			}
		case op == 3:
			got, ok := w.Remove(entries[v].id)
			require.True(t, ok)
			require.Equal(t, v, got)
			gone = append(gone, entries[v].id)
			delete(entries, v)
		case op == 4:
			if w.Move(entries[v].id, deadline) {
				entries[v].deadline, entries[v].slack = deadline, 0
			} else {
				require.LessOrEqual(t, deadline, now)
			}
		case op == 5:
			if w.MoveWithin(entries[v].id, deadline, slack) {
				entries[v].deadline, entries[v].slack = deadline, slack
			} else {
				require.LessOrEqual(t, deadline, now)
			}
		case op == 6:
			if next, ok := w.Next(); ok {
				require.GreaterOrEqual(t, next, w.Clock())
			}
			now += rng.Int64N(50)
			for more := true; more; {
				var n int
				n, more = w.Advance(now, out)
				for _, x := range out[:n] {
					e := entries[x.Value]
					require.NotNil(t, e)
					require.Equal(t, e.deadline, x.Deadline)
					require.GreaterOrEqual(t, x.Due, x.Deadline)
					require.LessOrEqual(t, x.Due, x.Deadline+e.slack)
					require.LessOrEqual(t, x.Due, now)
					require.False(t, w.Contains(e.id))
					gone = append(gone, e.id)
					delete(entries, x.Value)
				}
			}
			for _, e := range entries {
				require.Greater(t, e.deadline+e.slack, now, "it was to be handed out")
			}
		case op == 7 && len(gone) > 0:
			id := gone[rng.IntN(len(gone))]
			require.False(t, w.Contains(id))
			require.False(t, w.Move(id, now+10))
			_, ok := w.Deadline(id)
			require.False(t, ok)
			_, ok = w.Remove(id)
			require.False(t, ok)
		}
		require.Equal(t, len(entries), w.Len())
		if step%100 == 0 {
			seen := 0
			w.Each(func(id timingwheel.ID, x timingwheel.Expired[int]) {
				seen++
				require.Equal(t, entries[x.Value].id, id)
				require.Equal(t, entries[x.Value].deadline, x.Deadline)
				at, ok := w.Deadline(id)
				require.True(t, ok && w.Contains(id))
				require.Equal(t, x.Deadline, at)
			})
			require.Equal(t, len(entries), seen)
		}
	}
	for _, e := range entries {
		w.Remove(e.id)
	}
	for more := true; more; {
		_, more = w.Advance(now+1000, out)
	}
	require.True(t, w.Release())
}

// Observe spares an entry the way down from a high level.
func TestWheel_Observe(t *testing.T) {
	w, err := timingwheel.New[string](1, 4, 0)
	require.NoError(t, err)
	w.Observe(1_000_000)
	require.EqualValues(t, 1_000_000, w.Clock())
	_, ok := w.Add(1_000_001, "soon")
	require.True(t, ok)
	next, ok := w.Next()
	require.True(t, ok)
	require.EqualValues(t, 1_000_001, next)
}

// What was handed out is not kept alive.
func TestWheel_KeepsNothingThatIsGone(t *testing.T) {
	w, err := timingwheel.New[*[64]byte](1, 4, 0)
	require.NoError(t, err)
	value := new([64]byte)
	gone := weak.Make(value)
	_, ok := w.Add(1, value)
	require.True(t, ok)
	value = nil
	out := make([]timingwheel.Expired[*[64]byte], 4)
	n, _ := w.Advance(1, out)
	require.Equal(t, 1, n)
	require.NotNil(t, gone.Value(), "out has it")
	clear(out)
	runtime.GC()
	require.Nil(t, gone.Value())
	require.Zero(t, w.Len())
}

func TestNew_Refuses(t *testing.T) {
	_, err := timingwheel.New[int](0, 4, 0)
	require.ErrorIs(t, err, timingwheel.ErrTick)
	_, err = timingwheel.New[int](1, 3, 0)
	require.ErrorIs(t, err, timingwheel.ErrSize)
	_, err = timingwheel.New[int](1, timingwheel.MaxSize*2, 0)
	require.ErrorIs(t, err, timingwheel.ErrSize)
	_, err = timingwheel.New[int](1, 4, -1)
	require.ErrorIs(t, err, timingwheel.ErrStart)
	require.PanicsWithValue(t, "timingwheel: a Wheel that was not made by New", func() { new(timingwheel.Wheel[int]).Len() })
}
