package timer_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func Example() {
	s := timer.New()
	defer s.Close()

	timeout, err := s.Start(30*time.Second, func() { fmt.Println("no answer") })
	if err != nil {
		log.Fatal(err) // the Scheduler is closed, or has its maximum of timers pending
	}
	fmt.Println("answered in time:", timeout.Stop())

	done := make(chan struct{})
	s.AfterFunc(10*time.Millisecond, func() { close(done) })
	<-done
	// Output:
	// answered in time: true
}

// In the examples that follow the time is virtual, and starts here.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func ExampleScheduler_Start() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	s.Start(time.Second, func() { fmt.Println("a second has passed") })
	h, _ := s.Start(2*time.Second, func() { fmt.Println("never printed") })
	clk.Advance(time.Second)
	fmt.Println("stopped:", h.Stop())
	clk.Advance(time.Second)
	// Output:
	// a second has passed
	// stopped: true
}

// A connection's idle timeout is pushed back with each request.
func ExampleHandle_Reset() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	const idle = time.Minute
	h, _ := s.Start(idle, func() { fmt.Println("closed at", clk.Now().Format(time.TimeOnly)) })
	for range 10 { // requests
		clk.Advance(30 * time.Second)
		h.Reset(idle)
	}
	clk.Advance(time.Hour)
	fmt.Println("reset when it has fired:", h.Reset(idle))
	// Output:
	// closed at 12:06:00
	// reset when it has fired: false
}

// A Handle is a value: it can be compared, copied, kept in a map, and outlive its
// timer.
func ExampleHandle() {
	s := timer.New()
	defer s.Close()

	requests := map[timer.Handle]string{}
	h, _ := s.Start(time.Hour, func() {})
	requests[h] = "GET /"
	fmt.Println(requests[h], h.Stop(), h.Stop())
	var none timer.Handle
	fmt.Println(none.Stop())
	// Output:
	// GET / true false
	// false
}

// The functions with the names of package time's are on a default Scheduler. To
// migrate, change the import.
func ExampleAfterFunc() {
	done := make(chan struct{})
	t := timer.AfterFunc(time.Hour, func() { close(done) })
	fmt.Println("was active:", t.Reset(time.Millisecond))
	<-done
	fmt.Println("stopped in time:", t.Stop())
	// Output:
	// was active: true
	// stopped in time: false
}

func ExampleNewTimer() {
	answer := make(chan string)
	t := timer.NewTimer(time.Millisecond)
	defer t.Stop()
	select {
	case a := <-answer:
		fmt.Println(a)
	case <-t.C:
		fmt.Println("no answer")
	}
	// Output:
	// no answer
}

func ExampleNewTicker() {
	t := timer.NewTicker(time.Millisecond)
	defer t.Stop()
	for range 3 {
		<-t.C
		fmt.Println("tick")
	}
	// Output:
	// tick
	// tick
	// tick
}

func ExampleAfter() {
	answer := make(chan string)
	select {
	case a := <-answer:
		fmt.Println(a)
	case <-timer.After(time.Millisecond):
		fmt.Println("no answer")
	}
	// Output:
	// no answer
}

func ExampleSleep() {
	begin := time.Now()
	timer.Sleep(2 * time.Millisecond)
	fmt.Println(time.Since(begin) >= 2*time.Millisecond)
	// Output:
	// true
}

func ExampleScheduler_Every() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	n := 0
	var j *timer.Job
	j, _ = s.Every(10*time.Second, func() {
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

// Between the end of one run and the start of the next, and the first at once.
func ExampleFixedDelay() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	j, _ := s.Every(time.Minute, func() { fmt.Println("backup at", clk.Now().Format(time.TimeOnly)) },
		timer.FixedDelay(), timer.FirstAfter(0))
	clk.Advance(2 * time.Minute)
	fmt.Println("next at", j.Next().Format(time.TimeOnly))
	// Output:
	// backup at 12:00:00
	// backup at 12:01:00
	// backup at 12:02:00
	// next at 12:03:00
}

// What becomes of the occurrences that a long run passes over.
func ExampleOnOverrun() {
	s := timer.New()
	defer s.Close()

	// Each owed run follows as soon as the one before has ended.
	s.Every(time.Second, func() { /* count the seconds */ }, timer.OnOverrun(timer.Burst))
	// One makes up for all, and the next comes a period after it.
	s.Every(time.Second, func() { /* poll a server */ }, timer.OnOverrun(timer.Delay))
	// They are left out. This is the default.
	s.Every(time.Second, func() { /* redraw */ }, timer.OnOverrun(timer.Skip))
}

// nineOClock is a Schedule. Those of github.com/robfig/cron are too.
type nineOClock struct{}

func (nineOClock) Next(t time.Time) time.Time {
	next := time.Date(t.Year(), t.Month(), t.Day(), 9, 0, 0, 0, t.Location())
	if !next.After(t) {
		next = next.AddDate(0, 0, 1)
	}
	return next
}

func ExampleScheduler_Repeat() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	j, _ := s.Repeat(nineOClock{}, func() { fmt.Println(clk.Now().Format(time.DateTime)) })
	clk.Advance(48 * time.Hour)
	j.Stop()
	// Output:
	// 2030-01-02 09:00:00
	// 2030-01-03 09:00:00
}

// A cache whose entries expire: setting one again puts its time off.
func ExampleKeyed() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()

	sessions := timer.NewKeyed(s, func(user string, session int) {
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

func ExampleKeyed_Drain() {
	s := timer.New()
	defer s.Close()

	retries := timer.NewKeyed(s, func(id int, url string) { /* try again */ })
	retries.Set(1, "/a", 2*time.Hour)
	retries.Set(2, "/b", time.Hour)
	n := retries.Drain(func(id int, url string) { fmt.Println("given up:", id, url) })
	fmt.Println(n, retries.Len())
	// Output:
	// given up: 2 /b
	// given up: 1 /a
	// 2 0
}

// Close hands back what was pending, to be done now or by another Scheduler.
func ExampleScheduler_Close() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	s.AfterFunc(time.Hour, func() { fmt.Println("flushed") })

	s.Close()
	for p := range s.Leftover() {
		fmt.Println("due at", p.Deadline.Format(time.TimeOnly))
		p.Func()
	}
	_, err := s.Start(time.Second, func() {})
	fmt.Println(err)
	// Output:
	// due at 13:00:00
	// flushed
	// timer: the scheduler is closed
}

// Shutdown waits for the callbacks that are running.
func ExampleScheduler_Shutdown() {
	s := timer.New()
	started := make(chan struct{})
	s.AfterFunc(0, func() {
		close(started)
		time.Sleep(time.Millisecond)
		fmt.Println("the callback has ended")
	})
	<-started
	fmt.Println(s.Shutdown(context.Background()))
	// Output:
	// the callback has ended
	// <nil>
}

func ExampleScheduler_Stats() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()
	for i := range 100 {
		h, _ := s.Start(time.Duration(1+i)*time.Second, func() {})
		if i%2 == 0 {
			h.Stop()
		}
	}
	clk.Advance(10 * time.Second)
	st := s.Stats()
	fmt.Println(st.Started, st.Fired, st.Stopped, st.Pending)
	// Output:
	// 100 5 50 45
}

// A limit on the memory that timers can take.
func ExampleWithMaxPending() {
	s := timer.New(timer.WithMaxPending(1))
	defer s.Close()
	h, _ := s.Start(time.Hour, func() {})
	_, err := s.Start(time.Hour, func() {})
	fmt.Println(err, errors.Is(err, timer.ErrTooManyPending))
	h.Stop() // makes room
	_, err = s.Start(time.Hour, func() {})
	fmt.Println(err)
	// Output:
	// timer: too many pending timers true
	// <nil>
}

// At most 100 callbacks at a time; others wait.
func ExampleWithExecutor() {
	pool := executor.NewPool(executor.WithMaxWorkers(100))
	s := timer.New(timer.WithExecutor(pool))

	s.AfterFunc(0, func() { fmt.Println("a callback on the pool") })
	s.Shutdown(context.Background())
	pool.Shutdown(context.Background()) // an executor that was given is its giver's to end
	// Output:
	// a callback on the pool
}

func ExampleWithPanicHandler() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithPanicHandler(func(v any, stack []byte) {
		fmt.Println("recovered:", v)
	}))
	defer s.Close()
	s.AfterFunc(time.Second, func() { panic("oops") })
	s.AfterFunc(time.Second, func() { fmt.Println("not affected") })
	clk.Advance(time.Second)
	// Output:
	// recovered: oops
	// not affected
}

// Under a virtual clock a test needs not wait, and always runs the same.
func ExampleWithClock() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()
	s.AfterFunc(24*time.Hour, func() { fmt.Println("a day later") })
	clk.Advance(24 * time.Hour) // the callback has run when this returns
	fmt.Println("done")
	// Output:
	// a day later
	// done
}

// In a testing/synctest bubble time.Sleep, channels and contexts are on fake time,
// and so is a Scheduler that is made there. It must be closed before the bubble
// ends.
func ExampleNew_synctest() {
	_ = func(t *testing.T) { // TestRetry
		synctest.Test(t, func(t *testing.T) {
			s := timer.New()
			defer s.Close()
			begin := time.Now()
			s.Sleep(time.Hour) // returns at once, an hour later
			if d := time.Since(begin); d != time.Hour {
				t.Errorf("slept for %v", d)
			}
		})
	}
}
