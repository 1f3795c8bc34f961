package timer_test

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// Examples of what example_test.go's stories leave out, in the order of go doc.

func ExampleDefault() {
	h, err := timer.Default().Start(time.Hour, func() {})
	fmt.Println(err, h.Stop())
	// Output:
	// <nil> true
}

// A coarser tick makes fewer wake-ups, and timers later by at most that.
func ExampleWithTick() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithTick(time.Second))
	defer s.Close()

	for _, d := range []time.Duration{100 * time.Millisecond, 900 * time.Millisecond} {
		s.Start(d, func() { fmt.Println(clk.Now().Format(time.TimeOnly)) })
	}
	clk.Advance(time.Minute)
	fmt.Println("wake-ups:", s.Stats().Wakeups)
	// Output:
	// 12:00:01
	// 12:00:01
	// wake-ups: 1
}

// One shard keeps the order of ticks over all timers.
func ExampleWithShards() {
	s := timer.New(timer.WithShards(1))
	defer s.Close()
	fmt.Println(s.Len())
	// Output:
	// 0
}

func ExampleScheduler_AfterFunc() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	t := s.AfterFunc(time.Second, func() { fmt.Println("ran at", clk.Now().Format(time.TimeOnly)) })
	clk.Advance(time.Second)
	fmt.Println("was active:", t.Reset(time.Minute)) // runs once more
	clk.Advance(time.Hour)
	// Output:
	// ran at 12:00:01
	// was active: false
	// ran at 12:01:01
}

func ExampleScheduler_NewTimer() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	t := s.NewTimer(time.Second)
	clk.Advance(time.Minute)
	fmt.Println((<-t.C).Format(time.TimeOnly))
	// Output:
	// 12:00:01
}

func ExampleScheduler_NewTicker() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	t := s.NewTicker(time.Second)
	defer t.Stop()
	for range 2 {
		clk.Advance(time.Second)
		fmt.Println((<-t.C).Format(time.TimeOnly))
	}
	t.Reset(time.Minute)
	clk.Advance(time.Hour) // ticks that nobody reads are dropped
	fmt.Println((<-t.C).Format(time.TimeOnly))
	// Output:
	// 12:00:01
	// 12:00:02
	// 12:01:02
}

func ExampleScheduler_After() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	c := s.After(time.Second)
	clk.Advance(time.Second)
	fmt.Println((<-c).Format(time.TimeOnly))
	// Output:
	// 12:00:01
}

func ExampleScheduler_Tick() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	c := s.Tick(time.Second)
	clk.Advance(time.Second)
	fmt.Println((<-c).Format(time.TimeOnly), s.Tick(0) == nil)
	// Output:
	// 12:00:01 true
}

func ExampleScheduler_Sleep() {
	s := timer.New()
	defer s.Close()
	begin := time.Now()
	s.Sleep(2 * time.Millisecond)
	fmt.Println(time.Since(begin) >= 2*time.Millisecond)
	// Output:
	// true
}

func ExampleScheduler_Len() {
	s := timer.New()
	h, _ := s.Start(time.Hour, func() {})
	s.NewTimer(time.Hour)
	fmt.Println(s.Len())
	h.Stop()
	fmt.Println(s.Len())
	s.Close()
	fmt.Println(s.Len())
	// Output:
	// 2
	// 1
	// 0
}

func ExampleHandle_Stop() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	first, _ := s.Start(time.Second, func() { fmt.Println("first") })
	second, _ := s.Start(time.Minute, func() { fmt.Println("second") })
	clk.Advance(time.Second)
	fmt.Println(first.Stop(), second.Stop()) // only the second had yet to fire
	clk.Advance(time.Hour)
	// Output:
	// first
	// false true
}

// A value that was sent and not received is withdrawn: what comes after Stop is
// never from before it.
func ExampleTimer_Stop() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	t := s.NewTimer(time.Second)
	clk.Advance(time.Minute)
	fmt.Println(t.Stop(), len(t.C))
	// Output:
	// true 0
}

func ExampleTimer_Reset() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	t := s.NewTimer(time.Second)
	fmt.Println(t.Reset(time.Minute))
	clk.Advance(time.Hour)
	fmt.Println((<-t.C).Format(time.TimeOnly))
	// Output:
	// true
	// 12:01:00
}

func ExampleTicker_Reset() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	t := s.NewTicker(time.Hour)
	t.Reset(time.Second)
	clk.Advance(time.Second)
	fmt.Println((<-t.C).Format(time.TimeOnly))
	// Output:
	// 12:00:01
}

func ExampleTicker_Stop() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	t := s.NewTicker(time.Second)
	t.Stop()
	clk.Advance(time.Hour)
	fmt.Println(len(t.C))
	// Output:
	// 0
}
