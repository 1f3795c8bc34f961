package leak

import (
	"runtime"
	"time"
)

// One's own stack is no look for others.
func other() {
	runtime.Stack(make([]byte, 100), false)
	time.AfterFunc(time.Millisecond, func() {}) // want `can be`
}
