package upstream

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// An Overtaken is a virtual Clock whose time may pass while timers are being started.
type Overtaken struct {
	Clock
	Advance func(time.Duration)
	Pending func() int // timers and tickers
	Await   func()     // returns once one is pending
}

// CheckOvertaken starts timers and tickers while another goroutine moves the time to
// their moment: once they are pending, or regardless of them. Then each either has fired
// or is pending for a moment that is yet to come. The function makes a clock.
func CheckOvertaken(t *testing.T, clock func() Overtaken) {
	t.Helper()
	const d = time.Second
	rounds := 5_000
	if testing.Short() {
		rounds = 1_000
	}
	for _, tt := range []struct {
		name string
		// prepare returns what starts the timer and returns its channel, or nil.
		prepare func(Clock) func() <-chan time.Time
	}{
		{"NewTimer", func(c Clock) func() <-chan time.Time {
			return func() <-chan time.Time { return c.NewTimer(d).C }
		}},
		{"AfterFunc", func(c Clock) func() <-chan time.Time {
			return func() <-chan time.Time {
				ran := make(chan time.Time, 1)
				c.AfterFunc(d, func() { ran <- c.Now() })
				return ran
			}
		}},
		{"NewTicker", func(c Clock) func() <-chan time.Time {
			return func() <-chan time.Time { return c.NewTicker(d).C }
		}},
		{"Timer.Reset", func(c Clock) func() <-chan time.Time {
			tm := c.NewTimer(time.Hour)
			tm.Stop()
			return func() <-chan time.Time {
				tm.Reset(d)
				return tm.C
			}
		}},
		{"Ticker.Reset", func(c Clock) func() <-chan time.Time {
			tk := c.NewTicker(time.Hour)
			if tk.Stop(); tk.Reset == nil {
				return nil
			}
			return func() <-chan time.Time {
				tk.Reset(d)
				return tk.C
			}
		}},
	} {
		for _, counted := range []bool{true, false} {
			name := tt.name + "/any"
			if counted {
				name = tt.name + "/pending"
			}
			t.Run(name, func(t *testing.T) {
				for i := range rounds {
					o := clock()
					start := tt.prepare(o.Clock)
					if start == nil {
						t.Skip("the library has none")
					}
					var ready atomic.Bool
					started := make(chan (<-chan time.Time))
					go func() {
						ready.Store(true)
						started <- start()
					}()
					if counted {
						o.Await()
					} else {
						for !ready.Load() {
							runtime.Gosched()
						}
					}
					o.Advance(d)
					c := <-started
					if !o.hasFiredOrWaits(c, counted) {
						t.Fatalf("round %d: time has moved on, and the timer is due and has not fired", i)
					}
				}
			})
		}
	}
}

// hasFiredOrWaits reports whether a timer has fired, or is pending for a moment that is
// yet to come unless it must have fired: no time need pass for one that is due to fire.
func (o Overtaken) hasFiredOrWaits(c <-chan time.Time, must bool) bool {
	pending := o.Pending()
	if pending == 0 { // and so the function of AfterFunc may be under way
		select {
		case <-c:
			return true
		case <-time.After(10 * time.Second):
			return false
		}
	}
	if !Received(c) && must {
		return false
	}
	o.Advance(0)
	return o.Pending() == pending && !Received(c)
}
