package jobs_test

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func ExamplePeriodic() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	n := 0
	var j *jobs.Job
	j, _ = jobs.Periodic(s, 10*time.Second, func() {
		fmt.Println(clk.Now().Format(time.TimeOnly))
		if n++; n == 3 {
			j.Stop()
		}
	})
	clk.Advance(time.Hour)
	// Output:
	// 12:00:10
	// 12:00:20
	// 12:00:30
}

// The period counts from the end of one run to the start of the next. The first run is at
// once.
func ExampleFixedDelay() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	j, _ := jobs.Periodic(s, time.Minute, func() { fmt.Println("backup at", clk.Now().Format(time.TimeOnly)) },
		jobs.FixedDelay(), jobs.FirstAfter(0))
	clk.Advance(2 * time.Minute)
	fmt.Println("next at", j.Next().Format(time.TimeOnly))
	// Output:
	// backup at 12:00:00
	// backup at 12:01:00
	// backup at 12:02:00
	// next at 12:03:00
}

func ExampleFirstAfter() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	jobs.Periodic(s, time.Hour, func() { fmt.Println(clk.Now().Format(time.TimeOnly)) }, jobs.FirstAfter(time.Second))
	clk.Advance(2 * time.Hour)
	// Output:
	// 12:00:01
	// 13:00:01
}

// Three ways to handle occurrences that come during a long run.
func ExampleOnOverrun() {
	s := timer.New()
	defer s.Close()

	// Burst: missed runs follow at once, one after the other.
	jobs.Periodic(s, time.Second, func() { /* count the seconds */ }, jobs.OnOverrun(jobs.Burst))
	// Delay: one run for all missed ones, and the next one a period later.
	jobs.Periodic(s, time.Second, func() { /* poll a server */ }, jobs.OnOverrun(jobs.Delay))
	// Skip, the default: missed runs are dropped.
	jobs.Periodic(s, time.Second, func() { /* redraw */ }, jobs.OnOverrun(jobs.Skip))
}

// nineOClock is a Schedule of nine o'clock each day.
type nineOClock struct{}

func (nineOClock) Next(t time.Time) time.Time {
	next := time.Date(t.Year(), t.Month(), t.Day(), 9, 0, 0, 0, t.Location())
	if !next.After(t) {
		next = next.AddDate(0, 0, 1)
	}
	return next
}

func ExampleCalendar() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	j, _ := jobs.Calendar(s, nineOClock{}, func() { fmt.Println(clk.Now().Format(time.DateTime)) })
	clk.Advance(48 * time.Hour)
	j.Stop()
	// Output:
	// 2030-01-02 09:00:00
	// 2030-01-03 09:00:00
}

func ExampleJob_Next() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	j, _ := jobs.Periodic(s, time.Hour, func() {})
	fmt.Println(j.Next().Format(time.TimeOnly))
	j.Stop()
	fmt.Println(j.Next().IsZero())
	// Output:
	// 13:00:00
	// true
}

func ExampleJob_Stop() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	runs := 0
	var j *jobs.Job
	j, _ = jobs.Periodic(s, time.Second, func() {
		if runs++; runs == 3 {
			j.Stop()
		}
	})
	clk.Advance(time.Hour)
	fmt.Println(runs)
	// Output:
	// 3
}

// One run at a given date.
func ExampleAt() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	j, _ := jobs.Calendar(s, jobs.At(noon.AddDate(0, 0, 1)), func() { fmt.Println(clk.Now().Format(time.DateTime)) })
	clk.Advance(72 * time.Hour)
	fmt.Println(j.Next().IsZero())
	// Output:
	// 2030-01-02 12:00:00
	// true
}

func ExampleJob_Pause() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	j, _ := jobs.Periodic(s, time.Hour, func() { fmt.Println(clk.Now().Format(time.TimeOnly)) })
	j.Pause()
	clk.Advance(90 * time.Minute)
	j.RunNow() // works even while the job is paused
	clk.Advance(time.Hour)
	j.Resume()
	clk.Advance(time.Hour)
	// Output:
	// 13:30:00
	// 15:00:00
}
