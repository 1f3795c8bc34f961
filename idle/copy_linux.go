package idle

import (
	"net"
	"os"
	"syscall"
	"unsafe"
)

// canSplice is true because package net uses splice between sockets on Linux.
const canSplice = true

// waitReadable waits until stream socket rc has bytes to read or its stream ends, but not
// beyond the socket's read deadline. It returns how many bytes can be read at once. n is
// zero only at the end of the stream or with an error, which is like an error of c.Read.
// rc is the socket of c.
func waitReadable(rc syscall.RawConn, c net.Conn) (n int64, err error) {
	var fail error
	err = rc.Read(func(fd uintptr) (done bool) {
		n, done, fail = readable(int(fd))
		return done
	})
	if err == nil && fail != nil {
		err = &net.OpError{Op: "read", Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: fail}
	}
	return n, err
}

// readable returns how many bytes can be read. done is false if there are none yet.
func readable(fd int) (n int64, done bool, err error) {
	var b [1]byte
	for {
		// The number of bytes alone does not distinguish the end of the stream from no
		// bytes yet.
		k, _, err := syscall.Recvfrom(fd, b[:], syscall.MSG_PEEK)
		switch err {
		case nil:
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return 0, false, nil
		default:
			return 0, true, os.NewSyscallError("recvfrom", err)
		}
		if k == 0 {
			return 0, true, nil
		}
		break
	}
	var count int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TIOCINQ, uintptr(unsafe.Pointer(&count)))
	if errno != 0 {
		count = 0 // there is one byte at least
	}
	return int64(max(count, 1)), true, nil
}
