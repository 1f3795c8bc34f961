package conformance

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tickless/tickless/deadline"
	"github.com/tickless/tickless/timer"
)

// alarmLine is the function that goleak must ignore in tests that leave timers pending,
// according to docs/migrating.md.
const alarmLine = "github.com/tickless/tickless/internal/alarm.(*hub).wait"

// TestGoleak_Lines checks what docs/migrating.md says about goleak. On Linux, while a
// timer is due within a second, goleak finds the alarm's goroutine. If that timer is
// stopped while others are pending, the goroutine stays until the timer would have fired.
func TestGoleak_Lines(t *testing.T) {
	here := goleak.IgnoreCurrent()
	find := func(when string, options ...goleak.Option) {
		t.Helper()
		if err := goleak.Find(append(options, here)...); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}

	far := timer.AfterFunc(time.Hour, func() {})
	defer far.Stop()
	ticks := timer.NewTicker(time.Hour)
	defer ticks.Stop()
	ctx, cancel := deadline.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	select {
	case <-ctx.Done():
	default:
	}
	find("while timers are pending")

	near := timer.NewTimer(900 * time.Millisecond)
	defer near.Stop()
	find("while a timer is due soon", goleak.IgnoreAnyFunction(alarmLine))
	near.Stop()
	find("after that was stopped, while others are pending", goleak.IgnoreAnyFunction(alarmLine))

	ran := make(chan struct{})
	timer.AfterFunc(time.Millisecond, func() { close(ran) })
	<-ran
	short, cancelShort := deadline.WithTimeout(context.Background(), time.Millisecond)
	defer cancelShort()
	<-short.Done()
	find("after some have fired", goleak.IgnoreAnyFunction(alarmLine))

	cancel()
	far.Stop()
	ticks.Stop()
	find("after all were stopped")
}
