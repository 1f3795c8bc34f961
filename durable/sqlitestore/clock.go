package sqlitestore

import (
	"crypto/rand"
	"math"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// maxClockTime is the latest clock time at which a Store works. Later, the end of a lease
// might exceed store.Farthest.
const maxClockTime = store.Farthest - store.Time(24*time.Hour/time.Microsecond)

// A steadyClock measures leases. Setting the wall clock does not change it. On Linux all
// processes share the clock until the machine restarts. Elsewhere each Store has its own
// clock.
type steadyClock struct {
	bootID  string
	elapsed func() time.Duration // nil with WithClock: clk is steady itself
	wall    clock.Wall           // with WithClock, the wall time; nil if clk.Now is also the wall time
	clk     clock.Clock
}

func newSteadyClock(clk clock.Clock) steadyClock {
	x := steadyClock{clk: clk, bootID: "given"}
	x.wall, _ = clk.(clock.Wall)
	if clk == clock.System() {
		x.bootID, x.elapsed = bootClock()
	}
	return x
}

// readClocks reads the wall clock and the steady clock. It rounds down, so that no task is
// due early.
func (x *steadyClock) readClocks() machine.Moment {
	now := x.clk.Now()
	at := machine.Moment{Wall: store.Time(now.UnixMicro()), Boot: x.bootID, Steady: time.Duration(now.UnixNano())}
	if x.wall != nil {
		at.Wall = store.Time(x.wall.Wall().UnixMicro())
	}
	if x.elapsed != nil {
		at.Steady = x.elapsed()
	}
	return at
}

// maxSleep is the longest time that a worker sleeps if the system does not report
// changes of the wall clock.
func (x *steadyClock) maxSleep() time.Duration {
	if x.wall == nil && x.elapsed == nil {
		return math.MaxInt64
	}
	return time.Minute
}

// processClock returns a clock of this process alone, with a random boot id.
func processClock() (bootID string, read func() time.Duration) {
	begin := time.Now()
	return rand.Text(), func() time.Duration { return time.Since(begin) }
}
