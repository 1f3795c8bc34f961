package shadow

import (
	"time"
)

func parameter(timer *time.Timer, d time.Duration) *time.Timer {
	timer.Stop()
	return time.AfterFunc(d, func() { variable(d) }) // want `can be`
}
