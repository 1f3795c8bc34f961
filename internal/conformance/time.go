package conformance

import (
	"os"
	"strings"
	"time"

	"github.com/tickless/tickless/timer"
)

// Names of time and timer that the tests use.
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

// Interrupt replaces a signal that interrupts system calls. It does nothing: package
// timer makes no system call that a signal affects.
func Interrupt() {}

// AsynctimerChan replaces the GODEBUG setting of that name.
var AsynctimerChan godebugSetting

type godebugSetting struct{}

func (godebugSetting) Value() string {
	for kv := range strings.SplitSeq(os.Getenv("GODEBUG"), ",") {
		if v, ok := strings.CutPrefix(kv, "asynctimerchan="); ok {
			return v
		}
	}
	return ""
}

// CheckRuntimeTimerPeriodOverflow replaces package time's function of that name. It
// starts a ticker with the longest period, and checks that other timers still fire.
func CheckRuntimeTimerPeriodOverflow() {
	t := NewTicker(1<<63 - 1)
	defer t.Stop()
	<-After(25 * Millisecond)
}
