package k8s_test

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/clocks/k8s"
)

func Example() {
	fc := k8s.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	fc.AfterFunc(time.Hour, func() { fmt.Println("timed out") })
	fmt.Println(fc.Waiters(), "pending")
	fc.Step(time.Hour)
	fmt.Println(fc.Now())
	// Output:
	// 1 pending
	// timed out
	// 2030-01-01 01:00:00 +0000 UTC
}
