package upstream

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// CheckDue requires of timers that are due when they are started, with a delay of zero or
// less, what those of the library's own fake do: they fire at once, or when the time
// moves by any amount. It also compares what Stop and Reset report, but for the steps of
// which the library itself is wrong. Each of the functions makes a clock, and returns what
// moves it.
func CheckDue(t *testing.T, theirs, ours func(t *testing.T) (Clock, func(time.Duration)), wrong ...string) {
	t.Helper()
	run := func(clock func(t *testing.T) (Clock, func(time.Duration))) (log []string) {
		synctest.Test(t, func(t *testing.T) {
			c, advance := clock(t)
			ran := 0
			f := func() { ran++ }
			say := func(what string, tm Timer, results ...bool) {
				synctest.Wait()
				received := tm.C != nil && Received(tm.C)
				if slices.Contains(wrong, what) {
					results = nil
				}
				log = append(log, fmt.Sprint(what, ": ran ", ran, ", received ", received, ", results ", results))
				ran = 0
			}
			for _, d := range []time.Duration{0, -1, -time.Hour} {
				a := c.AfterFunc(d, f)
				ch := a.C
				a.C = nil // some libraries have one, which is full if nobody receives
				drain := func() {
					if ch != nil {
						Received(ch)
					}
				}
				say("AfterFunc", a)
				advance(0)
				say("then Advance(0)", a)
				drain()
				say("Reset", a, a.Reset(d))
				advance(time.Second)
				say("then Advance", a)
				drain()
				a.Reset(d)
				say("Stop after Reset", a, a.Stop())
				advance(time.Second)
				say("then Advance", a)
				say("Reset to later", a, a.Reset(time.Minute))
				say("Reset to now", a, a.Reset(d))
				advance(0)
				say("then Advance(0)", a)

				n := c.NewTimer(d)
				say("NewTimer", n)
				advance(0)
				say("then Advance(0)", n)
				n.Reset(time.Minute)
				say("Reset to now", n, n.Reset(d))
				advance(0)
				say("then Advance(0)", n)
				say("Stop", n, n.Stop())
			}
		})
		return log
	}
	want, got := run(theirs), run(ours)
	if !slices.Equal(got, want) {
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("step %d: %s; the library's own: %s", i, got[i], want[i])
			}
		}
	}
}
