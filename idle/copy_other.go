//go:build !linux

package idle

import (
	"errors"
	"net"
	"syscall"
)

// canSplice: package net has no fast way between sockets here.
const canSplice = false

func waitReadable(syscall.RawConn, net.Conn) (int64, error) { return 0, errors.ErrUnsupported }
