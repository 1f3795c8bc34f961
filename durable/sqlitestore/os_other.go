//go:build !linux

package sqlitestore

import (
	"errors"
	"time"
)

func bootClock() (string, func() time.Duration) { return processClock() }

func refuseNetwork(string) error { return nil }

// notify is only supported on Linux. Elsewhere watchOthers looks for commits at regular
// intervals.
func notify(path string, written, clockSet func()) (stop func(), err error) {
	return nil, errors.ErrUnsupported
}
