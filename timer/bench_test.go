package timer_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tickless/tickless/timer"
)

// Benchmarks of what package time cannot do. All others are in package benchmarks.

// delay returns a delay between 1 and 11 minutes, from a fixed sample.
func delay(i int) time.Duration { return delays[uint(i)%uint(len(delays))] }

var delays = func() []time.Duration {
	rng := rand.New(rand.NewPCG(1, 2))
	ds := make([]time.Duration, 1<<16)
	for i := range ds {
		ds[i] = time.Minute + time.Duration(rng.Int64N(int64(10*time.Minute)))
	}
	return ds
}()

func BenchmarkNewTimerStop(b *testing.B) {
	b.Run("impl=time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			time.NewTimer(time.Minute).Stop()
		}
	})
	b.Run("impl=tickless-default", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			timer.NewTimer(time.Minute).Stop()
		}
	})
	b.Run("impl=tickless", func(b *testing.B) {
		s := timer.New()
		defer s.Close()
		b.ReportAllocs()
		for b.Loop() {
			s.NewTimer(time.Minute).Stop()
		}
	})
}

// BenchmarkReset moves a random one of n pending timers to a later time.
func BenchmarkReset(b *testing.B) {
	const n = 100_000
	order := rand.New(rand.NewPCG(3, 4)).Perm(n)
	run := func(b *testing.B, reset func(i int, d time.Duration)) {
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			reset(order[i%n], delay(i)+12*time.Minute*time.Duration(1+i/n))
			i++
		}
	}
	b.Run("n=100k/impl=time", func(b *testing.B) {
		ts := make([]*time.Timer, n)
		for i := range ts {
			ts[i] = time.AfterFunc(delay(i), func() {})
		}
		run(b, func(i int, d time.Duration) { ts[i].Reset(d) })
		for _, t := range ts {
			t.Stop()
		}
	})
	s := timer.New()
	defer s.Close()
	b.Run("n=100k/impl=tickless-timer", func(b *testing.B) {
		ts := make([]*timer.Timer, n)
		for i := range ts {
			ts[i] = s.AfterFunc(delay(i), func() {})
		}
		run(b, func(i int, d time.Duration) { ts[i].Reset(d) })
		for _, t := range ts {
			t.Stop()
		}
	})
	b.Run("n=100k/impl=tickless", func(b *testing.B) {
		hs := make([]timer.Handle, n)
		for i := range hs {
			hs[i], _ = s.Start(delay(i), func() {})
		}
		run(b, func(i int, d time.Duration) { hs[i].Move(d) })
		for _, h := range hs {
			h.Stop()
		}
	})
}
