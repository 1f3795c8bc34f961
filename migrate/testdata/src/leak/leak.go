// Package leak has a test that looks for goroutines that were left behind.
package leak

import (
	"runtime"
	"time"
)

// A program may publish the number of its goroutines.
func publish() {
	println(runtime.NumGoroutine())
	time.AfterFunc(time.Millisecond, publish) // want `can be`
}
