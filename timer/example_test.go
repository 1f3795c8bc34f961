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
		log.Fatal(err) // the Scheduler is closed, or has too many pending timers
	}
	fmt.Println("answered in time:", timeout.Stop())

	done := make(chan struct{})
	s.AfterFunc(10*time.Millisecond, func() { close(done) })
	<-done
	// Output:
	// answered in time: true
}

// Time in the examples below is virtual and begins here.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func ExampleScheduler_Start() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
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

// The idle timeout of a connection is extended by each request.
func ExampleHandle_Move() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	const idle = time.Minute
	h, _ := s.Start(idle, func() { fmt.Println("closed at", clk.Now().Format(time.TimeOnly)) })
	for range 10 { // requests
		clk.Advance(30 * time.Second)
		h.Move(idle)
	}
	clk.Advance(time.Hour)
	fmt.Println("reset when it has fired:", h.Move(idle))
	// Output:
	// closed at 12:06:00
	// reset when it has fired: false
}

// A Handle is a value: it can be compared, copied and kept in a map, even longer than its
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

// The functions with the same names as in package time use the default Scheduler. To
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

// Close hands back pending timers, for the caller to run now or to start elsewhere.
func ExampleScheduler_Close() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	s.AfterFunc(time.Hour, func() { fmt.Println("flushed") })

	s.Close()
	for p := range s.TakeLeftover() {
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
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
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

// The limit bounds the memory of timers.
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

// At most 100 callbacks run at a time. Others wait.
func ExampleWithExecutor() {
	pool := executor.NewPool(executor.WithMaxWorkers(100))
	s := timer.New(timer.WithExecutor(pool))

	s.AfterFunc(0, func() { fmt.Println("a callback on the pool") })
	s.Shutdown(context.Background())
	pool.Shutdown(context.Background()) // the program must end an executor that it has given
	// Output:
	// a callback on the pool
}

func ExampleWithPanicHandler() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithPanicHandler(func(v any, stack []byte) {
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

// Under a virtual clock a test need not wait, and is deterministic.
func ExampleWithClock() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	s.AfterFunc(24*time.Hour, func() { fmt.Println("a day later") })
	clk.Advance(24 * time.Hour) // the callback has run when this returns
	fmt.Println("done")
	// Output:
	// a day later
	// done
}

// In a testing/synctest bubble, a Scheduler uses the bubble's fake time if it was made in
// the bubble. Close it before the bubble ends.
func ExampleNew_synctest() {
	_ = func(t *testing.T) { // TestRetry
		synctest.Test(t, func(t *testing.T) {
			s := timer.New()
			defer s.Close()
			begin := time.Now()
			s.Sleep(time.Hour) // an hour of fake time passes at once
			if d := time.Since(begin); d != time.Hour {
				t.Errorf("slept for %v", d)
			}
		})
	}
}

// A coarser tick causes fewer wake-ups. Timers are later by at most one tick.
func ExampleWithTick() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithTick(time.Second))
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

// Stop removes a sent value from the channel, so that a later receive never gets it.
func ExampleTimer_Stop() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	t := s.NewTimer(time.Second)
	clk.Advance(time.Minute)
	fmt.Println(t.Stop(), len(t.C))
	// Output:
	// true 0
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

// A retrier calls f until it succeeds, with pauses that double up to a limit. It needs no
// goroutine while it waits, so a million can wait at once.
type retrier struct {
	s            *timer.Scheduler
	f            func() error
	pause, limit time.Duration
}

func (r *retrier) try() {
	err := r.f()
	if err == nil {
		return
	}
	wait := r.pause // in a real program, a random part of it
	r.pause = min(2*r.pause, r.limit)
	if _, closed := r.s.Start(wait, r.try); closed != nil {
		fmt.Println("not tried again:", err)
	}
}

// A call that fails is tried again after growing pauses.
func Example_retryWithBackoff() {
	clk := timertest.NewClock(noon)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()

	attempts := 0
	r := &retrier{s: s, pause: time.Second, limit: 4 * time.Second, f: func() error {
		attempts++
		fmt.Println("attempt", attempts, "at", clk.Now().Format(time.TimeOnly))
		if attempts < 5 {
			return errors.New("no answer")
		}
		return nil
	}}
	r.try()
	clk.Advance(time.Minute)
	// Output:
	// attempt 1 at 12:00:00
	// attempt 2 at 12:00:01
	// attempt 3 at 12:00:03
	// attempt 4 at 12:00:07
	// attempt 5 at 12:00:11
}
