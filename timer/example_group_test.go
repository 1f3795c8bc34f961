package timer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func ExampleScheduler_SleepContext() {
	s := timer.New()
	defer s.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(s.SleepContext(ctx, time.Hour))
	// Output:
	// context deadline exceeded
}

// What the executor refuses is not lost without a word.
func ExampleWithDropHandler() {
	refuse := executor.Func(func(func()) error { return executor.ErrOverloaded })
	s := timer.New(
		timer.WithExecutor(refuse),
		timer.WithDropHandler(func(callback func(), err error) {
			fmt.Println("dropped:", err)
			go callback() // or else
		}),
	)
	ran := make(chan string)
	s.Start(time.Millisecond, func() { ran <- "it ran all the same" })
	fmt.Println(<-ran)
	s.Shutdown(context.Background())
	// Output:
	// dropped: executor: overloaded
	// it ran all the same
}

func ExampleKeyed_All() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()
	sessions := timer.NewKeyed(s, func(id int, user string) {})
	sessions.Set(1, "Ada", time.Minute)
	for id, user := range sessions.All() {
		deadline, _ := sessions.Deadline(id)
		fmt.Println(id, user, deadline.Format(time.TimeOnly))
	}
	// Output:
	// 1 Ada 12:01:00
}
