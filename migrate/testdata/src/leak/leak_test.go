package leak

import (
	"runtime"
	"time"
)

// A test's loop that waits for goroutines to end keeps package time.
func check(n int) bool {
	for range 10 {
		if runtime.NumGoroutine() <= n {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}
