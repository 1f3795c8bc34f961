package conformance

import (
	"os"
	"strings"
	"time"

	"github.com/tickless/tickless/timer"
)

// What the tests use of time and timer.
type (
	Duration = time.Duration
	Time     = time.Time
	Timer    = timer.Timer
	Ticker   = timer.Ticker
)

const (
	Nanosecond  = time.Nanosecond
	Microsecond = time.Microsecond
	Millisecond = time.Millisecond
	Second      = time.Second
	Minute      = time.Minute
	Hour        = time.Hour
)

var (
	Now   = time.Now
	Since = time.Since
	Until = time.Until
	Unix  = time.Unix
)

var (
	After     = timer.After
	AfterFunc = timer.AfterFunc
	NewTicker = timer.NewTicker
	NewTimer  = timer.NewTimer
	Sleep     = timer.Sleep
	Tick      = timer.Tick
)

// Interrupt stands in for a signal that interrupts system calls: package timer
// makes none that could tell.
func Interrupt() {}

// AsynctimerChan stands in for the GODEBUG setting of that name.
var AsynctimerChan setting

type setting struct{}

func (setting) Value() string {
	for kv := range strings.SplitSeq(os.Getenv("GODEBUG"), ",") {
		if v, ok := strings.CutPrefix(kv, "asynctimerchan="); ok {
			return v
		}
	}
	return ""
}

// CheckRuntimeTimerPeriodOverflow stands in for time's own of that name: it
// starts the ticker with the longest period there is and sees that other timers
// still fire.
func CheckRuntimeTimerPeriodOverflow() {
	t := NewTicker(1<<63 - 1)
	defer t.Stop()
	<-After(25 * Millisecond)
}
