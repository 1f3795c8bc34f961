package clockwork_test

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/clocks/clockwork"
)

func Example() {
	fc := clockwork.NewFakeClockAt(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	timeout := fc.NewTimer(time.Hour)
	go func() {
		fc.BlockUntil(1) // once the timer is pending
		fc.Advance(time.Hour)
	}()
	fmt.Println(<-timeout.Chan())
	// Output: 2030-01-01 01:00:00 +0000 UTC
}
