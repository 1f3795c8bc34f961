package timer_test

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func expireLease() {}

// Prints the names of the functions that pending timers will call.
func ExampleScheduler_Pending() {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	s.AfterFunc(time.Minute, expireLease)
	for p := range s.Pending() {
		fmt.Println(p.Kind, p.Function(), p.Due.Sub(clk.Now()))
	}
	// Output: func github.com/tickless/tickless/timer_test.expireLease 1m0s
}

// Exporters of metrics find the Schedulers that have a name.
func ExampleSchedulers() {
	s := timer.New(timer.WithName("leases"))
	defer s.Close()
	for s := range timer.Schedulers() {
		if s.Name() == "leases" {
			fmt.Println(s.Name(), s.Len())
		}
	}
	// Output: leases 0
}
