package timer_test

import (
	"context"
	"fmt"
	"time"

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
