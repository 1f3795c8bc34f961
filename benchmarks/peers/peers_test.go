package peers

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/benchmarks"
)

// racyLibraries have data races. TestRivals skips them under the race detector.
var racyLibraries = []string{Antlabs.Name, Xiaoxuxiansheng.Name}

// TestRivals checks that a timer runs once, and that a stopped timer does not run. It
// accepts early callbacks: some libraries run them a tick or two early.
func TestRivals(t *testing.T) {
	for _, m := range Rivals() {
		t.Run(m.Name, func(t *testing.T) {
			if raceDetector && slices.Contains(racyLibraries, m.Name) {
				t.Skip("the library has data races")
			}
			t.Parallel()
			const n = 100
			impl := m.New(n)
			defer impl.Close()
			var fired [n]atomic.Int32
			for slot := range n {
				d := time.Hour
				if slot%4 == 0 {
					d = 50 * time.Millisecond
				}
				impl.Start(slot, d, func() { fired[slot].Inc() })
			}
			for slot := range n {
				switch slot % 4 {
				case 1:
					if !impl.Stop(slot) {
						t.Errorf("slot %d could not be stopped", slot)
					}
				case 2:
					if !impl.Reset(slot, 60*time.Millisecond) {
						t.Errorf("slot %d could not be reset", slot)
					}
				}
			}
			if f, ok := impl.(benchmarks.Flusher); ok {
				f.Flush()
			}
			deadline := time.Now().Add(10 * time.Second)
			for slot := 0; slot < n; slot += 2 {
				for fired[slot].Load() == 0 && time.Now().Before(deadline) {
					time.Sleep(time.Millisecond)
				}
			}
			for slot := range n {
				if got, want := fired[slot].Load(), int32(1-slot%2); got != want {
					t.Errorf("slot %d fired %d times, want %d", slot, got, want)
				}
			}
		})
	}
}
