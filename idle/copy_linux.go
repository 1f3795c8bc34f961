package idle

import (
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canSplice is true because package net uses splice between sockets on Linux.
const canSplice = true

// waitReadable waits for bytes from c, and returns how many can be read now. 0 means the
// end of the stream. Errors are like those of c.Read. rc is the RawConn of c.
func waitReadable(rc syscall.RawConn, c net.Conn) (n int64, err error) {
	var recvErr error
	err = rc.Read(func(fd uintptr) (done bool) {
		n, done, recvErr = readableBytes(int(fd))
		return done
	})
	if err == nil && recvErr != nil {
		err = &net.OpError{Op: "read", Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: recvErr}
	}
	return n, err
}

// readableBytes returns how many bytes can be read from a socket now. If n is 0, done
// reports whether the stream has ended.
func readableBytes(fd int) (n int64, done bool, err error) {
	var b [1]byte
	for {
		// Check for the end of the stream first. The ioctl below returns 0 at the end,
		// but also when no bytes have arrived yet.
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

// acknowledged returns how many bytes the peer of c has acknowledged, and at least how
// long ago the last of them. It returns 0 if the kernel does not know.
func acknowledged(c *net.TCPConn) (bytes uint64, ago time.Duration) {
	rc, err := c.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = rc.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		// The peer also acknowledges keepalive probes, which do not count as data. The
		// kernel also repeats data that the peer does not acknowledge. The earlier of the
		// two is about when the peer took the last data.
		ago = time.Duration(max(info.Last_data_sent, info.Last_ack_recv)) * time.Millisecond
		bytes = info.Bytes_acked
	})
	return bytes, ago
}
