package timer

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/internal/wheel"
	"github.com/tickless/tickless/timertest"
)

// What docs/scaling.md reckons with: how long the locks are held, and what a timer that
// falls due costs the poller.

// startRandom starts n timers on a shard that are due after base, by less than span.
func startRandom(b *testing.B, rng *rand.Rand, sh *shard, n int, base, span time.Duration) []wheel.ID {
	ids := make([]wheel.ID, n)
	sh.mu.Lock()
	defer sh.unlock()
	now := sh.s.now()
	for i := range ids {
		id, err := sh.startLocked(now, base+time.Duration(rng.Int64N(int64(span))), funcPayload(nothing), tagFunc)
		if err != nil {
			b.Fatal(err)
		}
		ids[i] = id
	}
	return ids
}

func nothing() {}

// BenchmarkHold is the time for which a start, a stop and a reset hold their shard's
// lock, beside a million others of between one and eleven minutes.
func BenchmarkHold(b *testing.B) {
	const (
		pending    = 1 << 20
		base, span = time.Minute, 10 * time.Minute
		group      = 4096
	)
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk))
	defer s.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	sh := s.shards.first
	ids := startRandom(b, rng, sh, pending, base, span)
	delays := make([]time.Duration, group)
	for i := range delays {
		delays[i] = base + time.Duration(rng.Int64N(int64(span)))
	}
	// round does an operation on some timers at random and takes the time.
	run := func(name string, op func(now int64, i int, id wheel.ID) wheel.ID, after func(now int64, i int, id wheel.ID) wheel.ID) {
		b.Run(name, func(b *testing.B) {
			chosen := make([]int, group)
			for done := 0; done < b.N; {
				b.StopTimer()
				n := min(group, b.N-done)
				for i := range chosen[:n] {
					chosen[i] = rng.IntN(pending/group)*group + i // no timer twice
				}
				sh.mu.Lock()
				now := s.now()
				b.StartTimer()
				for i, c := range chosen[:n] {
					ids[c] = op(now, i, ids[c])
				}
				b.StopTimer()
				for i, c := range chosen[:n] {
					ids[c] = after(now, i, ids[c])
				}
				sh.unlock()
				done += n
				b.StartTimer()
			}
		})
	}
	start := func(now int64, i int, _ wheel.ID) wheel.ID {
		id, _ := sh.startLocked(now, delays[i], funcPayload(nothing), tagFunc)
		return id
	}
	stop := func(_ int64, _ int, id wheel.ID) wheel.ID {
		if !sh.stopLocked(id) {
			b.Fatal("it is not pending")
		}
		return id
	}
	keep := func(_ int64, _ int, id wheel.ID) wheel.ID { return id }
	run("Stop", stop, start)
	run("StartAndStop", func(now int64, i int, id wheel.ID) wheel.ID {
		fresh := start(now, i, id)
		stop(now, i, fresh)
		return id
	}, keep)
	run("Reset", func(now int64, i int, id wheel.ID) wheel.ID {
		sh.resetLocked(now, id, delays[i])
		return id
	}, keep)
}

// BenchmarkHoldOthers is what the calls take that hold the other locks: the lock itself
// is held for a little less. The poller's is taken by a start whose bucket is the first
// of all (told), and if it is earlier than what the alarm is set for, it moves the alarm;
// the pool's is taken for a batch of callbacks that the poller hands over, the lateness's
// for a batch that it fires.
func BenchmarkHoldOthers(b *testing.B) {
	s := New()
	defer s.Close()
	p := &s.poller
	wake := func(b *testing.B, armed int64, in time.Duration) {
		for b.Loop() {
			p.mu.Lock()
			p.armed = armed
			p.mu.Unlock()
			p.wake(s.now() + int64(in))
		}
	}
	b.Run("poller/told", func(b *testing.B) { wake(b, 0, time.Minute) })
	b.Run("poller/moves=to-10s", func(b *testing.B) { wake(b, never, 10*time.Second) })
	b.Run("poller/moves=to-500ms", func(b *testing.B) { wake(b, never, 500*time.Millisecond) })
	p.wake(s.now())

	b.Run("pool/batch=256", func(b *testing.B) {
		pool := executor.NewPool(executor.WithWorkers(1), executor.WithMaxWorkers(1))
		defer pool.Close()
		fs := make([]func(), batchSize)
		for i := range fs {
			fs[i] = nothing
		}
		const group = 1000
		for done := 0; done < b.N; done += group {
			b.StopTimer()
			held, idle := make(chan struct{}), make(chan struct{})
			if err := pool.Submit(func() { <-held }); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			for range min(group, b.N-done) {
				if _, err := pool.SubmitBatch(fs); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if err := pool.Submit(func() { close(idle) }); err != nil {
				b.Fatal(err)
			}
			close(held)
			<-idle
			b.StartTimer()
		}
	})

	b.Run("lateness/batch=256", func(b *testing.B) {
		now := s.now()
		expired := make([]wheel.Expired[payload], batchSize)
		for i := range expired {
			at := now - int64(i)*1000
			expired[i] = wheel.Expired[payload]{Value: funcPayload(nothing), Deadline: at, Due: at, Tag: tagFunc}
		}
		for b.Loop() {
			p.late.record(expired, now)
		}
	})
}

// BenchmarkPollerExpiry is what a timer that falls due costs the poller, by how many
// share a bucket and how often they have moved down. Callbacks do nothing, on a pool.
func BenchmarkPollerExpiry(b *testing.B) {
	for _, w := range []struct {
		name       string
		base, span time.Duration
		shards, n  int
	}{
		{"moves=0/shards=1/rate=10k", time.Millisecond, 24 * time.Millisecond, 1, 240},
		{"moves=0/shards=1/rate=1M", time.Millisecond, 24 * time.Millisecond, 1, 24_000},
		{"moves=0/shards=1/rate=40M", time.Millisecond, 24 * time.Millisecond, 1, 960_000},
		{"moves=0/shards=32/rate=1M", time.Millisecond, 24 * time.Millisecond, 32, 24_000},
		{"moves=0/shards=32/rate=10M", time.Millisecond, 24 * time.Millisecond, 32, 240_000},
		{"moves=0/shards=128/rate=1M", time.Millisecond, 24 * time.Millisecond, 128, 24_000},
		{"moves=0/shards=128/rate=10M", time.Millisecond, 24 * time.Millisecond, 128, 240_000},
		{"moves=1/shards=1/rate=1M", time.Second, time.Second, 1, 1_000_000},
		{"moves=1/shards=32/rate=1M", time.Second, time.Second, 32, 1_000_000},
		{"moves=1/shards=128/rate=1M", time.Second, time.Second, 128, 1_000_000},
		{"moves=2/shards=1/rate=100k", time.Minute, 10 * time.Second, 1, 1_000_000},
		{"moves=2/shards=32/rate=100k", time.Minute, 10 * time.Second, 32, 1_000_000},
	} {
		b.Run(w.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			pool := executor.NewPool()
			defer pool.Close()
			clk := timertest.NewClock(time.Unix(0, 0))
			s := New(WithClock(clk), WithShards(w.shards), WithExecutor(pool))
			defer s.Close()
			for range b.N {
				b.StopTimer()
				for i := range w.shards {
					startRandom(b, rng, s.shards.at(i), w.n/w.shards, w.base, w.span)
				}
				b.StartTimer()
				clk.Advance(w.base + w.span + time.Second)
			}
			if s.Len() > 0 {
				b.Fatal("some are pending")
			}
			st := s.Stats()
			each := float64(b.N) * float64(w.n/w.shards*w.shards)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/each, "ns/timer")
			b.ReportMetric(float64(st.Wakeups)/each, "wakeups/timer")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkManyProcs starts and stops timers on all procs at once, beside nothing else:
// with -cpu 1,4,16,64 it shows what more procs than the machine has come to.
func BenchmarkManyProcs(b *testing.B) {
	b.Run("impl=tickless", func(b *testing.B) {
		s := New()
		defer s.Close()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				h, err := s.Start(time.Minute, nothing)
				if err != nil || !h.Stop() {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(len(madeShards(s))), "shards")
	})
	b.Run("impl=time", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				time.AfterFunc(time.Minute, nothing).Stop()
			}
		})
	})
}
