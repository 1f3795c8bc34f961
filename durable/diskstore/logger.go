package diskstore

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A logger is what Pebble logs to. Pebble calls Fatalf when it cannot go on, and expects
// that the process ends: the default logger sees to that.
type logger struct {
	log  *slog.Logger
	fail func(error)

	mu      sync.Mutex
	begin   time.Time // of the minute
	lines   int       // in it
	dropped int       // since the last line
}

// linesPerMinute is how much of what Pebble says is logged: it tries again what has
// failed, at once and for as long as it fails.
const linesPerMinute = 10

func (*logger) Infof(string, ...any) {}

func (l *logger) Errorf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.begin) > time.Minute {
		l.begin, l.lines = now, 0
	}
	if l.lines == linesPerMinute {
		l.dropped++
		return
	}
	l.lines++
	attrs := []any{}
	if l.dropped > 0 {
		attrs = append(attrs, "lines left out before", l.dropped)
	}
	l.dropped = 0
	l.log.Warn("diskstore: "+firstLine(fmt.Sprintf(format, args...)), attrs...)
}

// firstLine returns a text without the stack that Pebble puts below it.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Fatalf parks the goroutine that calls it, so that Pebble does not go on: see gate. All
// of them are Pebble's own, or the Store's.
func (l *logger) Fatalf(format string, args ...any) {
	text := firstLine(fmt.Sprintf(format, args...))
	err := fmt.Errorf("%s", text)
	for _, a := range args {
		if cause, ok := a.(error); ok {
			err = fmt.Errorf("%w (%s)", cause, text)
		}
	}
	l.fail(err)
	park()
}
