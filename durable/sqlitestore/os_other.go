//go:build !linux

package sqlitestore

import (
	"errors"
	"time"
)

func systemSteady() (string, func() time.Duration) { return ownSteady() }

func refuseNetwork(string) error { return nil }

// notify would call changed and set for watchOthers, as on Linux. Without it, watchOthers
// looks for commits at regular intervals.
func notify(path string, changed, set func()) (stop func(), err error) {
	return nil, errors.ErrUnsupported
}
