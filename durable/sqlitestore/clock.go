package sqlitestore

import (
	"crypto/rand"
	"math"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// lastTime is the last time at which a Store works. Later, the end of a lease might not
// be representable.
const lastTime = store.Farthest - store.Time(24*time.Hour/time.Microsecond)

// A steady is the clock of leases, which is never set. On Linux all processes share it
// until the machine restarts. Elsewhere each Store has its own, and does not detect
// that the wall clock was set forward between a transaction of another process and its
// own.
type steady struct {
	boot string
	tell func() time.Duration // nil for a given clock, which is steady itself
	wall clock.Wall           // of a given clock; nil if its Now is the time of day too
	clk  clock.Clock
}

func newSteady(clk clock.Clock) steady {
	x := steady{clk: clk, boot: "given"}
	x.wall, _ = clk.(clock.Wall)
	if clk == clock.System() {
		x.boot, x.tell = systemSteady()
	}
	return x
}

// moment reads the clocks. It rounds down, so that no task is due early.
func (x *steady) moment() machine.Moment {
	now := x.clk.Now()
	at := machine.Moment{Wall: store.Time(now.UnixMicro()), Boot: x.boot, Steady: time.Duration(now.UnixNano())}
	if x.wall != nil {
		at.Wall = store.Time(x.wall.Wall().UnixMicro())
	}
	if x.tell != nil {
		at.Steady = x.tell()
	}
	return at
}

// maxSleep is the longest time that a worker sleeps if the system does not report
// changes of the wall clock.
func (x *steady) maxSleep() time.Duration {
	if x.wall == nil && x.tell == nil {
		return math.MaxInt64
	}
	return time.Minute
}

// ownSteady returns a clock of this process.
func ownSteady() (boot string, read func() time.Duration) {
	begin := time.Now()
	return rand.Text(), func() time.Duration { return time.Since(begin) }
}
