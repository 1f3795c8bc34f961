// Package leak looks for goroutines that were left behind.
package leak

import (
	"runtime"
	"time"
)

func check(n int) bool {
	for range 10 {
		if runtime.NumGoroutine() <= n { // want `goroutines are counted here`
			return true
		}
		time.Sleep(time.Millisecond) // want `time.Sleep stays: the file looks for leaked goroutines`
	}
	return false
}
