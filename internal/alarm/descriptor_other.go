//go:build !linux

package alarm

import "os"

// Without a timerfd, the hub uses package time's timers.

func newTimerfd() *os.File      { return nil }
func setTimerfd(uintptr, int64) {}

func newBlockingTimerfd() (fd int, ok bool) { return 0, false }
func awaitTimerfd(int)                      {}
func closeTimerfd(int)                      {}
