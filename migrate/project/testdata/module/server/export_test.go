package server

import "time"

// SetNewIdle replaces what starts the timer.
func SetNewIdle(f func(time.Duration, func()) *time.Timer) (restore func()) {
	old := newIdle
	newIdle = f
	return func() { newIdle = old }
}
