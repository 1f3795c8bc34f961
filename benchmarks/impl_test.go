package benchmarks_test

import (
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/benchmarks"
)

// TestImpl checks that each implementation starts, stops and resets timers. Otherwise an
// implementation that does nothing would seem the fastest.
func TestImpl(t *testing.T) {
	for _, m := range benchmarks.Makers() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			const slots = 100
			impl := m.New(slots)
			defer impl.Close()
			var fired [slots]atomic.Int32
			begin := time.Now()
			for slot := range slots {
				d := time.Hour
				if slot%4 == 0 {
					d = 20 * time.Millisecond
				}
				impl.Start(slot, d, func() {
					if time.Since(begin) < 20*time.Millisecond {
						t.Errorf("slot %d fired early", slot)
					}
					fired[slot].Inc()
				})
			}
			for slot := range slots {
				switch slot % 4 {
				case 1:
					if !impl.Stop(slot) {
						t.Errorf("slot %d could not be stopped", slot)
					}
					if impl.Stop(slot) {
						t.Errorf("slot %d was stopped twice", slot)
					}
				case 2:
					if !impl.Reset(slot, 30*time.Millisecond) {
						t.Errorf("slot %d could not be reset", slot)
					}
				}
			}
			deadline := time.Now().Add(10 * time.Second)
			for slot := 0; slot < slots; slot += 2 {
				for fired[slot].Load() == 0 && time.Now().Before(deadline) {
					time.Sleep(time.Millisecond)
				}
			}
			for slot := range slots {
				if got, want := fired[slot].Load(), int32(1-slot%2); got != want {
					t.Errorf("slot %d fired %d times, want %d", slot, got, want)
				}
				if slot%2 == 0 && impl.Stop(slot) {
					t.Errorf("slot %d was stopped after it had fired", slot)
				}
			}
		})
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 10_000: "10k", 1_000_000: "1M", 1_500_000: "1500k"} {
		if got := benchmarks.Size(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}
