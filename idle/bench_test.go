package idle_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/tickless/tickless/idle"
)

const million = 1_000_000

func forget(*int, time.Time) {}

// millionWatched returns a Monitor that watches a million things. It also returns their
// entries, in random order.
func millionWatched(b *testing.B) (*idle.Monitor[*int], []*idle.Entry[*int]) {
	m := idle.New(forget)
	es := make([]*idle.Entry[*int], million)
	for i := range es {
		es[i], _ = m.Watch(nil, time.Duration(1+i%8)*10*time.Minute)
	}
	rand.Shuffle(len(es), func(i, j int) { es[i], es[j] = es[j], es[i] })
	b.Cleanup(func() { m.Close() })
	return m, es
}

func millionTimers(b *testing.B) []*time.Timer {
	ts := make([]*time.Timer, million)
	for i := range ts {
		ts[i] = time.AfterFunc(time.Duration(1+i%8)*10*time.Minute, func() {})
	}
	rand.Shuffle(len(ts), func(i, j int) { ts[i], ts[j] = ts[j], ts[i] })
	b.Cleanup(func() {
		for _, t := range ts {
			t.Stop()
		}
	})
	return ts
}

// BenchmarkTouch measures one touch of an entry: always the same (n=1), or a random one
// of a million (n=1M). touch reads the clock, but touchAt does not.
func BenchmarkTouch(b *testing.B) {
	b.Run("impl=touchAt/n=1", func(b *testing.B) {
		m := idle.New(forget)
		defer m.Close()
		e, _ := m.Watch(nil, time.Hour)
		at := m.Now()
		b.ReportAllocs()
		for b.Loop() {
			at++
			e.TouchAt(at)
		}
	})
	b.Run("impl=touch/n=1", func(b *testing.B) {
		m := idle.New(forget)
		defer m.Close()
		e, _ := m.Watch(nil, time.Hour)
		b.ReportAllocs()
		for b.Loop() {
			e.Touch()
		}
	})
	b.Run("impl=time.Timer/n=1", func(b *testing.B) {
		t := time.AfterFunc(time.Hour, func() {})
		defer t.Stop()
		b.ReportAllocs()
		for b.Loop() {
			t.Reset(time.Hour)
		}
	})
	b.Run("impl=touchAt/n=1M", func(b *testing.B) {
		m, es := millionWatched(b)
		at, i := m.Now(), 0
		b.ReportAllocs()
		for b.Loop() {
			at++
			es[i].TouchAt(at)
			if i++; i == million {
				i = 0
			}
		}
	})
	b.Run("impl=touch/n=1M", func(b *testing.B) {
		_, es := millionWatched(b)
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			es[i].Touch()
			if i++; i == million {
				i = 0
			}
		}
	})
	b.Run("impl=time.Timer/n=1M", func(b *testing.B) {
		ts := millionTimers(b)
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			ts[i].Reset(30 * time.Minute)
			if i++; i == million {
				i = 0
			}
		}
	})
}

// BenchmarkWatchStop measures a Watch and a Stop while a million other entries are
// watched.
func BenchmarkWatchStop(b *testing.B) {
	b.Run("impl=idle/n=1M", func(b *testing.B) {
		m, _ := millionWatched(b)
		b.ReportAllocs()
		for b.Loop() {
			e, _ := m.Watch(nil, 30*time.Minute)
			e.Stop()
		}
	})
	b.Run("impl=time.Timer/n=1M", func(b *testing.B) {
		millionTimers(b)
		b.ReportAllocs()
		for b.Loop() {
			time.AfterFunc(30*time.Minute, func() {}).Stop()
		}
	})
}

// BenchmarkMemory reports the bytes per watched thing: an Entry with the user's pointer,
// or a closure and a timer.
func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var st runtime.MemStats
		runtime.ReadMemStats(&st)
		return st.HeapAlloc
	}
	b.Run("impl=idle/n=1M", func(b *testing.B) {
		for b.Loop() {
			es := make([]*idle.Entry[*int], million)
			before := heap()
			m := idle.New(forget)
			for i := range es {
				es[i], _ = m.Watch(nil, time.Duration(1+i%8)*10*time.Minute)
			}
			b.ReportMetric(float64(heap()-before)/million, "bytes/thing")
			m.Close()
			runtime.KeepAlive(es)
		}
	})
	b.Run("impl=time.Timer/n=1M", func(b *testing.B) {
		for b.Loop() {
			ts := make([]*time.Timer, million)
			before := heap()
			for i := range ts {
				x := i
				ts[i] = time.AfterFunc(time.Duration(1+i%8)*10*time.Minute, func() { forget(&x, time.Time{}) })
			}
			b.ReportMetric(float64(heap()-before)/million, "bytes/thing")
			for _, t := range ts {
				t.Stop()
			}
		}
	})
}
