package timertest_test

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A year passes in a moment, and every callback has run when Advance returns.
func Example() {
	clk := timertest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	s.AfterFunc(365*24*time.Hour, func() { fmt.Println("fired at", clk.Now().Format(time.DateTime)) })

	clk.Advance(365*24*time.Hour - 1)
	fmt.Println("pending:", s.Len())
	clk.Advance(1)
	fmt.Println("pending:", s.Len())
	// Output:
	// pending: 1
	// fired at 2031-01-01 00:00:00
	// pending: 0
}

// A timer that is started between two ticks fires at the end of a tick, up to one tick
// after its delay.
func ExampleClock_Advance() {
	clk := timertest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithTick(10*time.Millisecond))
	defer s.Close()

	clk.Advance(3 * time.Millisecond)
	s.AfterFunc(time.Second, func() { fmt.Println("fired at", clk.Now().Format("05.000")) })
	clk.Advance(time.Second)
	fmt.Println("after a second, pending:", s.Len())
	clk.Advance(10 * time.Millisecond)
	// Output:
	// after a second, pending: 1
	// fired at 01.010
}

// SetWall sets the time of day while the clock advances. That affects
// schedules, but not durations.
func ExampleClock_SetWall() {
	clk := timertest.NewClock(time.Date(2030, 1, 1, 8, 0, 0, 0, time.UTC))
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	jobs.Periodic(s, 10*time.Minute, func() { fmt.Println("ten minutes later it is", clk.Wall().Format(time.TimeOnly)) })

	clk.SetWall(time.Date(2030, 1, 1, 20, 0, 0, 0, time.UTC))
	clk.Advance(10 * time.Minute)
	// Output:
	// ten minutes later it is 20:10:00
}

// Next returns the moment of the next alarm, to which a test can then advance.
func ExampleClock_Next() {
	clk := timertest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithTick(time.Second))
	defer s.Close()
	for _, d := range []time.Duration{3 * time.Second, time.Minute} {
		s.AfterFunc(d, func() { fmt.Println(d) })
	}
	for s.Len() > 0 {
		next, _ := clk.Next()
		clk.AdvanceTo(next)
	}
	fmt.Println(clk.Now().Format(time.TimeOnly))
	// Output:
	// 3s
	// 1m0s
	// 00:01:00
}
