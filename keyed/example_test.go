package keyed_test

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// A cache whose entries expire. Setting an entry again extends its life.
func Example() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	sessions := keyed.New(s, func(user string, session int) {
		fmt.Println(user, session, "expired at", clk.Now().Format(time.TimeOnly))
	})
	sessions.Set("ann", 1, time.Hour)
	sessions.Set("bob", 2, time.Hour)
	sessions.Set("eve", 3, time.Hour)
	clk.Advance(30 * time.Minute)
	sessions.Set("ann", 4, time.Hour) // a new value, and an hour from now
	sessions.Move("bob", 10*time.Minute)
	session, ok := sessions.Remove("eve")
	fmt.Println("removed", session, ok)
	clk.Advance(24 * time.Hour)
	// Output:
	// removed 3 true
	// bob 2 expired at 12:40:00
	// ann 4 expired at 13:30:00
}

func ExampleTimers_Drain() {
	s := timer.New()
	defer s.Close()

	retries := keyed.New(s, func(id int, url string) { /* try again */ })
	retries.Set(1, "/a", 2*time.Hour)
	retries.Set(2, "/b", time.Hour)
	n := retries.Drain(func(id int, url string) { fmt.Println("given up:", id, url) })
	fmt.Println(n, retries.Len())
	// Output:
	// given up: 2 /b
	// given up: 1 /a
	// 2 0
}

func ExampleTimers_Move() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	sessions := keyed.New(s, func(id int, user string) {
		fmt.Println(user, "left at", clk.Now().Format(time.TimeOnly))
	})

	sessions.Set(1, "Ada", time.Minute)
	fmt.Println(sessions.Move(1, time.Hour), sessions.Move(2, time.Hour))
	clk.Advance(2 * time.Hour)
	// Output:
	// true false
	// Ada left at 13:00:00
}

func ExampleTimers_Remove() {
	s := timer.New()
	defer s.Close()
	sessions := keyed.New(s, func(int, string) {})

	sessions.Set(1, "Ada", time.Minute)
	fmt.Println(sessions.Get(1))
	fmt.Println(sessions.Remove(1))
	_, ok := sessions.Remove(1)
	fmt.Println(ok, sessions.Len())
	// Output:
	// Ada true
	// Ada true
	// false 0
}

func ExampleTimers_Items() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	sessions := keyed.New(s, func(id int, user string) {})
	sessions.Set(1, "Ada", time.Minute)
	for item := range sessions.Items() {
		fmt.Println(item.Key, item.Value, item.Deadline.Format(time.TimeOnly))
	}
	// Output:
	// 1 Ada 12:01:00
}
