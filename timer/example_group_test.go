package timer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// The timers of one connection go with it.
func ExampleGroup() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	conn := timer.NewGroup(s)
	conn.Start(time.Second, func() { fmt.Println("ping") })
	conn.Start(30*time.Second, func() { fmt.Println("idle") })
	conn.Start(time.Hour, func() { fmt.Println("session over") })
	clk.Advance(2 * time.Second)
	fmt.Println("closed, with", conn.Stop(), "timers pending")
	clk.Advance(2 * time.Hour)
	// Output:
	// ping
	// closed, with 2 timers pending
}

// After StopWait nothing of the Group is running, so that what its callbacks use can be
// closed.
func ExampleGroup_StopWait() {
	s := timer.New()
	defer s.Close()

	running := make(chan struct{})
	flush := timer.NewGroup(s)
	flush.Start(0, func() { close(running); fmt.Println("flushed") })
	<-running
	if err := flush.StopWait(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("closed")
	// Output:
	// flushed
	// closed
}

func ExampleScheduler_StartBatch() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	starts := make([]timer.Start, 1000)
	for i := range starts {
		starts[i] = timer.Start{Delay: time.Minute, Func: func() { fmt.Println("replica", i, "is late") }}
	}
	hs, err := s.StartBatch(nil, starts)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(timer.StopBatch(hs[1:])) // all but one have answered
	clk.Advance(time.Hour)
	// Output:
	// 999
	// replica 0 is late
}

func ExampleScheduler_StartAt() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	h, _ := s.StartAt(noon.Add(90*time.Minute), func() { fmt.Println("half past one") })
	deadline, _ := h.Deadline()
	fmt.Println("set for", deadline.Format(time.TimeOnly))
	clk.Advance(2 * time.Hour)
	// Output:
	// set for 13:30:00
	// half past one
}

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
