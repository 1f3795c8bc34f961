//go:build !linux

package alarm

import "github.com/tickless/tickless/clock"

func newSystem(f func()) Alarm { return On(clock.System(), f) }
