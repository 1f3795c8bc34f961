package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// A load is a pattern of timers for [Sweep].
type load struct {
	name  string
	ahead time.Duration // from the start of the first timer to its deadline
	span  time.Duration // from the first deadline to the last; 0 means 2 s
	// perMillisecond timers fall due in each millisecond, evenly spread. Alternatively,
	// atOnce timers fall due together, every 100 ms.
	perMillisecond, atOnce int
	paced                  bool // each timer is started the time ahead before its deadline, not all at the beginning
	// Every blockEvery, the callback of an additional timer sleeps 100 ms. Every
	// computeEvery, one computes for 50 ms.
	blockEvery, computeEvery time.Duration
	schedulers               int // the timers take turns; 0 means 1
	chains                   int // additional timers that start themselves again for 10 ms later
	// resets of Timers, in turn, happen every 10 ms. A third of them are to now, the others
	// to 1 ms and 5 ms later.
	resets int
}

// loads are the patterns of [Sweep].
func loads() []load {
	const near, far = 300 * time.Millisecond, 6300 * time.Millisecond
	var ls []load
	for _, ahead := range []time.Duration{near, far} {
		for _, n := range []int{1, 10, 100, 1000} {
			ls = append(ls, load{name: fmt.Sprintf("each-ms=%d/ahead=%v", n, ahead), ahead: ahead, perMillisecond: n})
		}
	}
	// A wheel with the default tick begins a slot of its third level every 6.55 s. Then
	// the timers of that slot move down, and the span of these loads has such a moment.
	const slotAndMore = 7 * time.Second
	return append(ls,
		load{name: "paced=10/ahead=6.3s", ahead: far, perMillisecond: 10, paced: true, span: slotAndMore},
		load{name: "paced=200/ahead=5s", ahead: 5 * time.Second, perMillisecond: 200, paced: true, span: slotAndMore},
		load{name: "each-ms=10/ahead=20s", ahead: 20 * time.Second, perMillisecond: 10},
		load{name: "each-ms=10/ahead=60s", ahead: time.Minute, perMillisecond: 10},
		load{name: "same-ms=10k/ahead=1s", ahead: time.Second, atOnce: 10_000, span: time.Millisecond},
		load{name: "same-ms=100k/ahead=7s", ahead: 7 * time.Second, atOnce: 100_000, span: time.Millisecond},
		load{name: "bursts=1k", ahead: near, atOnce: 1000, perMillisecond: 1},
		load{name: "bursts=10k/ahead=6.3s", ahead: far, atOnce: 10_000, perMillisecond: 1},
		load{name: "schedulers=2", ahead: near, perMillisecond: 10, schedulers: 2},
		load{name: "sleepers", ahead: near, perMillisecond: 1, blockEvery: 50 * time.Millisecond},
		load{name: "sleepers/schedulers=2", ahead: near, perMillisecond: 1, blockEvery: 50 * time.Millisecond, schedulers: 2},
		load{name: "all-sleep", ahead: near, blockEvery: time.Millisecond},
		load{name: "computers", ahead: near, perMillisecond: 1, computeEvery: 200 * time.Millisecond},
		load{name: "computers/schedulers=2", ahead: near, perMillisecond: 1, computeEvery: 200 * time.Millisecond, schedulers: 2},
		load{name: "sleepers/each-ms=100", ahead: far, perMillisecond: 100, blockEvery: 50 * time.Millisecond},
		load{name: "chains=100", ahead: near, chains: 100},
		load{name: "resets=10k", ahead: near, perMillisecond: 1, resets: 10_000},
	)
}

// sweepMaker makes the Impls of Sweep. If timers is true, a slot holds a Timer.
type sweepMaker struct {
	name string
	new  func(slots int, timers bool) Impl
}

func sweepMakers() []sweepMaker {
	makers := []sweepMaker{{"time", func(slots int, _ bool) Impl { return newStdTime(slots) }}}
	add := func(name string, opts func() []timer.Option) {
		makers = append(makers, sweepMaker{name, func(slots int, timers bool) Impl {
			if timers {
				return &ticklessTimer{timer.New(opts()...), Touched[*timer.Timer](slots)}
			}
			return &tickless{timer.New(opts()...), Touched[timer.Handle](slots)}
		}})
	}
	add("tickless", func() []timer.Option { return nil })
	for _, tick := range []time.Duration{10 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
		add("tick="+strings.Replace(tick.String(), "µ", "u", 1), func() []timer.Option { return []timer.Option{timer.WithTick(tick)} })
	}
	add("slack=10ms", func() []timer.Option {
		return []timer.Option{timer.WithSlack(0, 10*time.Millisecond, 10*time.Millisecond)}
	})
	add("goroutines", func() []timer.Option { return []timer.Option{timer.WithExecutor(executor.NewGoroutines())} })
	add("pool", func() []timer.Option { return []timer.Option{timer.WithExecutor(executor.NewPool())} })
	add("inline", func() []timer.Option { return []timer.Option{timer.WithExecutor(executor.NewInline())} })
	return makers
}

// Sweep measures many patterns of load, each in a process that does nothing else. It
// reports
//
//   - p50-ms, p99-ms, max-ms: how late callbacks began
//   - early, lost: callbacks that ran too early or never
//   - cpu-ms/s: milliseconds of CPU time per second, from when all timers are started
//
// Its purpose is to find patterns in which timers are late. So it has many of them, and
// few runs of each.
func Sweep(b *testing.B) {
	for _, m := range sweepMakers() {
		b.Run("impl="+m.name, func(b *testing.B) {
			for _, l := range loads() {
				if testing.Short() {
					l.ahead, l.span, l.atOnce = 50*time.Millisecond, 50*time.Millisecond, min(l.atOnce, 100)
				}
				b.Run("load="+l.name, func(b *testing.B) {
					for _, p := range choose([]int{2}, []int{1, 2, 8}, []int{1, 2, 8}) {
						b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
							reportChildFigures(b, func() map[string]float64 {
								defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
								return l.run(m)
							})
						})
					}
				})
			}
		})
	}
}

// A sweepTimer is a timer of a load.
type sweepTimer struct {
	after time.Duration // of its deadline, since the first possible one
	work  func()        // after the callback has noted the time; may be nil
}

// timers returns the load's timers, without the resets and chains, in random order.
func (l *load) timers() (ts []sweepTimer) {
	add := func(every time.Duration, n int, work func()) {
		for at := time.Duration(0); every > 0 && at < l.span; at += every {
			for range n {
				ts = append(ts, sweepTimer{at, work})
			}
		}
	}
	if l.perMillisecond > 0 {
		add(time.Millisecond/time.Duration(l.perMillisecond), 1, nil)
	}
	if l.atOnce > 0 {
		add(100*time.Millisecond, l.atOnce, nil)
	}
	add(l.blockEvery, 1, func() { time.Sleep(100 * time.Millisecond) })
	add(l.computeEvery, 1, func() { compute(50 * time.Millisecond) })
	rand.New(rand.NewPCG(7, 8)).Shuffle(len(ts), func(i, j int) { ts[i], ts[j] = ts[j], ts[i] })
	return ts
}

// run runs the load and returns the figures of Sweep.
func (l load) run(m sweepMaker) map[string]float64 {
	if l.span == 0 {
		l.span = 2 * time.Second
	}
	numbersPerMicrosecond()
	ts := l.timers()
	rounds := int(l.span / (10 * time.Millisecond)) // of chains and resets
	resetsPerRound := l.resets / max(rounds, 1)
	n, chained := len(ts), l.chains*rounds
	s := &scatteredTimers{deadlines: make([]time.Duration, n+chained+resetsPerRound*rounds), gracePeriod: busyGracePeriod, done: make(chan struct{})}
	s.ranAt = make([]atomic.Int64, len(s.deadlines))
	s.todo.Store(int32(len(s.deadlines)))
	ran := func(i int) {
		s.ranAt[i].Store(int64(time.Since(s.startTime)))
		s.countDone()
	}
	var impls []Impl
	for range max(l.schedulers, 1) {
		impl := m.new(n+l.chains+resetsPerRound*rounds, l.resets > 0)
		defer impl.Close()
		impls = append(impls, impl)
	}
	s.startTime = time.Now()
	begin := l.ahead // of the deadlines
	if !l.paced {
		begin += time.Duration(n) * time.Microsecond // to start them
	}
	start := func(i int) {
		s.deadlines[i] = begin + ts[i].after
		impls[i%len(impls)].Start(i, s.deadlines[i]-time.Since(s.startTime), func() {
			ran(i)
			if ts[i].work != nil {
				ts[i].work()
			}
		})
	}
	if l.paced {
		l.startPaced(ts, s.startTime, start)
	} else {
		for i := range ts {
			start(i)
		}
		runtime.GC()
	}
	usageBefore, startTime := currentUsage(), time.Now()
	for c := range l.chains {
		l.startChain(impls[0], s, n+c, n+c*rounds, rounds, begin, ran)
	}
	if l.resets > 0 {
		l.resetTimers(impls[0], s, n+l.chains, n+chained, resetsPerRound, rounds, begin, ran)
	}
	select {
	case <-s.done:
	case <-time.After(begin + l.span + busyGracePeriod):
	}
	usageAfter, elapsed := currentUsage(), time.Since(startTime).Seconds()
	late, lost := s.measureLateness()
	figures := map[string]float64{
		"p50-ms": quantile(late, 0.5), "p99-ms": quantile(late, 0.99), "max-ms": quantile(late, 1),
		"early": float64(countEarly(late)), "lost": float64(lost),
	}
	if usageBefore.ok {
		figures["cpu-ms/s"] = milliseconds(usageAfter.cpuTime-usageBefore.cpuTime) / elapsed
	}
	return figures
}

// startPaced starts each timer when its deadline is l.ahead away.
func (l *load) startPaced(ts []sweepTimer, startTime time.Time, start func(i int)) {
	order := make([][]int, l.span/time.Millisecond+1) // the timers of each millisecond
	for i := range ts {
		ms := ts[i].after / time.Millisecond
		order[ms] = append(order[ms], i)
	}
	for ms, is := range order {
		time.Sleep(time.Duration(ms)*time.Millisecond - time.Since(startTime))
		for _, i := range is {
			start(i)
		}
	}
}

// startChain starts a timer that starts itself again for 10 ms later, rounds times. It
// uses a slot, and rounds elements of s from first on.
func (l *load) startChain(impl Impl, s *scatteredTimers, slot, first, rounds int, begin time.Duration, ran func(int)) {
	const interval = 10 * time.Millisecond
	i, last := first, first+rounds-1
	var f func()
	next := func(d time.Duration) {
		s.deadlines[i] = time.Since(s.startTime) + d
		impl.Start(slot, d, f)
	}
	f = func() {
		ran(i)
		if i < last {
			i++
			next(interval)
		}
	}
	next(begin - time.Since(s.startTime) + interval*time.Duration(first%100)/100)
}

// resetTimers resets n new Timers each round, as the comment at load.resets says. It uses
// slots and elements of s from firstSlot and first on.
func (l *load) resetTimers(impl Impl, s *scatteredTimers, firstSlot, first, n, rounds int, begin time.Duration, ran func(int)) {
	for i := range n * rounds {
		impl.Start(firstSlot+i, time.Hour, func() { ran(first + i) })
	}
	for round := range rounds {
		time.Sleep(begin + time.Duration(round)*10*time.Millisecond - time.Since(s.startTime))
		for i := round * n; i < (round+1)*n; i++ {
			d := []time.Duration{0, time.Millisecond, 5 * time.Millisecond}[i%3]
			s.deadlines[first+i] = time.Since(s.startTime) + d
			impl.Reset(firstSlot+i, d)
		}
	}
}
