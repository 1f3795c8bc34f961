//go:build !linux

package sqlitestore

import (
	"errors"
	"time"
)

func bootClock() (string, func() time.Duration) { return processClock() }

func refuseNetworkFolder(string) error { return nil }

// watchLogAndClock is only supported on Linux. Elsewhere watchOtherCommits looks for
// commits at regular intervals.
func watchLogAndClock(path string, onWrite, onClockSet func()) (stop func(), err error) {
	return nil, errors.ErrUnsupported
}

// Only Linux tells when a process began. Elsewhere a worker that was killed counts until it
// has been silent for a day.
func thisProcess() string { return "" }

func processLives(string) bool { return true }
