//go:build !linux

package alarm

import "os"

// There is no timerfd on this system: package time's timer rings alone.

func newTimerfd() *os.File      { return nil }
func setTimerfd(uintptr, int64) {}
