package quartz_test

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/clocks/quartz"
	"github.com/tickless/tickless/timertest"
)

func Example() {
	clk := timertest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	c := quartz.NewVirtual(clk)
	timeout := c.NewTimer(time.Hour)
	clk.Advance(time.Hour)
	fmt.Println(<-timeout.C)
	// Output: 2030-01-01 01:00:00 +0000 UTC
}
