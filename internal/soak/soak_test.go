package soak

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// fromEnv returns the length of the test, and the share of time for which each computing
// goroutine computes.
func fromEnv(t *testing.T) (length time.Duration, load float64) {
	length, load = 4*time.Second, 0.5
	if v := os.Getenv("TICKLESS_SOAK"); v != "" {
		d, err := time.ParseDuration(v)
		require.NoError(t, err, "TICKLESS_SOAK")
		length = d
	}
	if v := os.Getenv("TICKLESS_SOAK_LOAD"); v != "" {
		percent, err := strconv.Atoi(v)
		require.NoError(t, err, "TICKLESS_SOAK_LOAD")
		load = float64(percent) / 100
	}
	return length, load
}

// grace is how late a timer may be before it counts as lost.
const grace = time.Minute

func TestSoak(t *testing.T) {
	length, load := fromEnv(t)
	longest := min(length/4, 20*time.Second)
	gap := 2 * time.Millisecond
	if load < 0.2 { // a light run
		gap = 20 * time.Millisecond
	}
	settle(t)
	if length >= time.Minute {
		warmGoroutines(30_000) // see moreHeap
	}
	before := take()

	s := timer.New(timer.WithName("soak"))
	slack := timer.New(timer.WithName("slack"), timer.WithSlack(0.1, time.Millisecond, time.Second))
	watching, m := monitor()
	waiting, p := requests(s)
	calling, web := calls(s)
	talking, listener := conns(t)
	r := &run{longest: longest, end: make(chan struct{}), schedulers: []*timer.Scheduler{s, slack}}
	r.kinds = []kind{
		{"handles", false, handles(s, s.Start)},
		{"slack", false, handles(slack, slack.Start)},
		{"within", false, handles(s, func(d time.Duration, f func()) (timer.Handle, error) {
			return s.StartWithin(d, d/4, f)
		})},
		{"timers", false, timers(s)}, {"tickers", true, tickers(s)}, {"every", true, periodic(s)},
		{"contexts", false, contexts()}, {"keyed", false, keys(s)},
		{"deadlines", false, deadlines()}, {"repeat", true, schedules(s)},
		watching, waiting, calling, talking,
	}
	for _, k := range r.kinds {
		r.ledgers = append(r.ledgers, newLedger(k.name))
	}
	var working sync.WaitGroup
	for i, k := range r.kinds {
		seed := rand.Uint64()
		t.Logf("%s: seed %d", k.name, seed)
		working.Go(func() { r.work(i, seed, gap) })
	}
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() { compute(r.end, load) })
	}

	n, pause := pauses(length, longest)
	stretch := length/time.Duration(n) - longest - pause
	var seen []usage
	for range n {
		r.watch(t, max(length/40, 500*time.Millisecond), now()+stretch)
		r.gate.Lock()
		r.pauseLocked(t)
		seen = append(seen, lowest(pause))
		if len(seen) == n {
			close(r.end)
		} else {
			r.resumeLocked()
		}
		r.gate.Unlock()
	}
	working.Wait()
	flat(t, seen)

	for i, l := range r.ledgers {
		require.Positive(t, l.fired.Load(), l)
		require.True(t, r.kinds[i].repeats || length < time.Minute || l.stopped.Load() > 0, l)
		t.Log(l)
	}
	require.NoError(t, p.Shutdown(t.Context()))
	require.NoError(t, m.Shutdown(t.Context()))
	require.NoError(t, web.Shutdown(t.Context()))
	require.NoError(t, listener.Close())
	require.NoError(t, listener.Conns().Shutdown(t.Context()))
	for _, s := range r.schedulers {
		require.NoError(t, s.Shutdown(t.Context()))
		st := s.Stats()
		require.Equal(t, st.Started, st.Fired+st.Stopped+st.HandedBack+st.FellBack)
		require.Zero(t, st.Panicked+st.Refused+st.Rejected)
	}
	left(t, before)
}

// check fails the test if the ledger has complaints, or if a timer is lost.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	wrong := l.wrong
	l.mu.Unlock()
	require.Empty(t, wrong)
	if _, lost := l.pending(now() - grace); lost > 0 {
		t.Fatalf("%d of these are overdue by a minute: %v", lost, l)
	}
}

// compute computes for the given share of the time, and sleeps otherwise.
func compute(end <-chan struct{}, share float64) {
	if share <= 0 {
		return
	}
	const stretch = 5 * time.Millisecond
	for x := uint64(1); !isClosed(end); {
		for begin := time.Now(); time.Since(begin) < stretch; {
			for range 1000 {
				x = x*6364136223846793005 + 1442695040888963407
			}
		}
		if x == 0 {
			panic("cannot be")
		}
		time.Sleep(time.Duration(float64(stretch) * (1 - share) / share))
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
