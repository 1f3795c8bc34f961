//go:build !linux

package idle

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// canSplice is false because package net has no splice on this system.
const canSplice = false

func waitReadable(syscall.RawConn, net.Conn) (int64, error) { return 0, errors.ErrUnsupported }

func acknowledged(*net.TCPConn) (bytes uint64, ago time.Duration) { return 0, 0 }
