//go:build !linux

package sqlitestore

import (
	"errors"
	"time"
)

func systemSteady() (string, func() time.Duration) { return ownSteady() }

func refuseNetwork(string) error { return nil }

func notify(string, func(), func()) (func(), error) { return nil, errors.ErrUnsupported }
