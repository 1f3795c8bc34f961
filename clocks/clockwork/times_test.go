package clockwork_test

import (
	"testing"
	"time"

	upstream "github.com/jonboulle/clockwork"

	"github.com/tickless/tickless/clocks/clockwork"
)

// The times of a FakeClock equal those that a test computes from the time it was made
// from, with ==, as those of clockwork's own do.
func TestFakeClock_TimesEqualThoseItWasMadeFrom(t *testing.T) {
	type fakeClock interface {
		upstream.Clock
		Advance(time.Duration)
	}
	zone := time.FixedZone("zone", 3600)
	for name, start := range map[string]time.Time{
		"now":          time.Now(),
		"now in zone":  time.Now().In(zone),
		"no monotonic": time.Now().Round(0),
		"date":         time.Date(2030, 1, 1, 0, 0, 0, 0, zone),
	} {
		for impl, c := range map[string]fakeClock{
			"clockwork": upstream.NewFakeClockAt(start),
			"tickless":  clockwork.NewFakeClockAt(start),
		} {
			equal := func(what string, got, want time.Time) {
				t.Helper()
				if got != want {
					t.Errorf("%s, %s, %s: %v, want %v", impl, name, what, got, want)
				}
			}
			equal("Now", c.Now(), start)
			after := c.After(time.Second)
			ticker := c.NewTicker(time.Second)
			c.Advance(time.Second)
			equal("Now", c.Now(), start.Add(time.Second))
			equal("After", <-after, start.Add(time.Second))
			equal("ticker", <-ticker.Chan(), start.Add(time.Second))
			c.Advance(-time.Second)
			equal("set back", c.Now(), start)
			equal("Now", start.Add(time.Minute), c.Now().Add(time.Minute))
			ticker.Stop()
		}
	}
}
