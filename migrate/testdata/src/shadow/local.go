package shadow

import "time"

func variable(d time.Duration) bool {
	timer := time.NewTimer(d) // want `can be`
	defer timer.Stop()
	return timer.Reset(d)
}
