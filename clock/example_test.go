package clock_test

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/timertest"
)

// A reminder uses a Clock, so that its test need not wait in real time.
type reminder struct{ alarm clock.Alarm }

func newReminder(clk clock.Clock, text string) *reminder {
	return &reminder{clk.NewAlarm(func() {
		fmt.Println(clk.Now().Format(time.TimeOnly), text)
	})}
}

func ExampleClock() {
	clk := timertest.NewClock(time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)) // in a program: clock.System()
	r := newReminder(clk, "tea")
	r.alarm.Reset(time.Hour)
	r.alarm.Reset(3 * time.Hour) // replaces the first setting
	clk.Advance(24 * time.Hour)
	// Output: 12:00:00 tea
}
