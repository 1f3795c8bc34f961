package timer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// peer is what has a timer as a field.
type peer struct {
	name    string
	timeout timer.Timer
	ended   []string
}

func (p *peer) timedOut() { p.ended = append(p.ended, p.name) }

func TestInit_TimerAsAField(t *testing.T) {
	s, clk := virtual(t)
	peers := []*peer{{name: "a"}, {name: "b"}, {name: "c"}}
	for _, p := range peers {
		timer.Init(&p.timeout, s, (*peer).timedOut, p)
		require.False(t, p.timeout.Stop(), "not started")
		require.False(t, p.timeout.Reset(time.Second))
	}
	require.Equal(t, 3, s.Len())
	require.True(t, peers[0].timeout.Stop())
	require.True(t, peers[1].timeout.Reset(2*time.Second))
	clk.Advance(time.Second)
	require.Empty(t, peers[0].ended)
	require.Empty(t, peers[1].ended)
	require.Equal(t, []string{"c"}, peers[2].ended)
	clk.Advance(time.Second)
	require.Equal(t, []string{"b"}, peers[1].ended)
	require.False(t, peers[1].timeout.Reset(time.Second), "again")
	require.False(t, peers[2].timeout.Reset(0), "at once")
	clk.Advance(time.Second)
	require.Equal(t, []string{"b", "b"}, peers[1].ended)
	require.Equal(t, []string{"c", "c"}, peers[2].ended)
	require.Nil(t, peers[0].timeout.C)
	balanced(t, s.Stats())

	// One that is pending at Close is handed back with its function.
	peers[0].timeout.Reset(time.Minute)
	for p := range leftover(s) {
		p.Func()
	}
	require.Equal(t, []string{"a"}, peers[0].ended)
}

func TestInit_AllocatesNothing(t *testing.T) {
	s := timer.New()
	defer s.Close()
	p := &peer{}
	timer.Init(&p.timeout, s, (*peer).timedOut, p)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p.timeout.Reset(time.Hour)
		p.timeout.Reset(2 * time.Hour)
		p.timeout.Stop()
	}))
}

func TestInit_FallsBackAtTheLimit(t *testing.T) {
	s, clk := virtual(t, timer.WithMaxPending(1))
	start(t, s, forever, func() {})
	p := &peer{name: "a"}
	timer.Init(&p.timeout, s, (*peer).timedOut, p)
	p.timeout.Reset(time.Second)
	require.EqualValues(t, 1, s.Stats().FellBack)
	clk.Advance(time.Second)
	require.Equal(t, []string{"a"}, p.ended)
}

func TestInit_Panics(t *testing.T) {
	s, _ := virtual(t)
	const msg = "timer: Init with a nil Scheduler, func or argument"
	p := &peer{}
	require.PanicsWithValue(t, msg, func() { timer.Init(&p.timeout, nil, (*peer).timedOut, p) })
	require.PanicsWithValue(t, msg, func() { timer.Init(&p.timeout, s, nil, p) })
	require.PanicsWithValue(t, msg, func() { timer.Init(&p.timeout, s, (*peer).timedOut, nil) })
}

// BenchmarkField is a connection's timer that is started and stopped, and one that is
// set later, beside a Handle.
func BenchmarkField(b *testing.B) {
	s := timer.New()
	defer s.Close()
	p := &peer{}
	timer.Init(&p.timeout, s, (*peer).timedOut, p)
	f := func() {}
	b.Run("op=startstop/impl=handle", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h, _ := s.Start(time.Minute, f)
			h.Stop()
		}
	})
	b.Run("op=startstop/impl=field", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.timeout.Reset(time.Minute)
			p.timeout.Stop()
		}
	})
	b.Run("op=reset/impl=handle", func(b *testing.B) {
		b.ReportAllocs()
		h, _ := s.Start(time.Minute, f)
		for b.Loop() {
			h.Reset(time.Minute)
		}
		h.Stop()
	})
	b.Run("op=reset/impl=field", func(b *testing.B) {
		b.ReportAllocs()
		p.timeout.Reset(time.Minute)
		for b.Loop() {
			p.timeout.Reset(time.Minute)
		}
		p.timeout.Stop()
	})
}

// BenchmarkDeadlineSet is a deadline that is set later and later, and nobody waits.
func BenchmarkDeadlineSet(b *testing.B) {
	s := timer.New()
	defer s.Close()
	begin := time.Now().Add(time.Hour)
	b.Run("impl=time", func(b *testing.B) {
		t := time.AfterFunc(time.Hour, func() {})
		for b.Loop() {
			t.Reset(time.Hour)
		}
		t.Stop()
	})
	b.Run("impl=tickless", func(b *testing.B) {
		var d timer.Deadline
		d.Init(s)
		for i := 0; b.Loop(); i++ {
			d.Set(begin.Add(time.Duration(i)))
		}
	})
}
