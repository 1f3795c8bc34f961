package diskstore

import (
	"fmt"
	"log/slog"
)

// A logger is what Pebble logs to. Pebble calls Fatalf when it cannot go on, and expects
// that the process ends: the default logger sees to that.
type logger struct {
	log  *slog.Logger
	fail func(error)
}

func (logger) Infof(string, ...any) {}

func (l logger) Errorf(format string, args ...any) {
	l.log.Warn("diskstore: " + fmt.Sprintf(format, args...))
}

// Fatalf parks the goroutine that calls it, so that Pebble does not go on: see gate. All
// of them are Pebble's own, or the Store's.
func (l logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	for _, a := range args {
		if cause, ok := a.(error); ok {
			err = fmt.Errorf("%w (%s)", cause, fmt.Sprintf(format, args...))
		}
	}
	l.fail(err)
	park()
}
