//go:build !linux

package idle

import (
	"errors"
	"syscall"
)

// canSplice: package net has no fast way between sockets here.
const canSplice = false

func waitReadable(syscall.RawConn) (int64, error) { return 0, errors.ErrUnsupported }
