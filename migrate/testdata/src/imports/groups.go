package imports

import (
	"fmt"
	"time" // for timers

	"foreign/clock"
)

// The comment stays with its import.
func groups() {
	fmt.Println(clock.Zero)
	time.AfterFunc(time.Second, groups) // want `can be`
}
