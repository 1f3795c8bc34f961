package idle

import (
	"io"
	"io/fs"
	"net"
	"syscall"
)

// # Copies
//
// For a whole copy, io.Copy makes one call: ReadFrom of the destination or WriteTo of the
// source. This call may last for hours, in the kernel (sendfile, splice). A Conn splits
// it into pieces, and counts each piece as activity:
//
//   - From a regular file, a piece has a fixed size.
//   - From a socket, a piece is only what has arrived. To wait for a full piece could take
//     longer than the timeout.
//   - From any other source, io.Copy copies through a buffer.

// ReadFrom copies from r until its end. [io.Copy] calls ReadFrom.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	if dst, ok := c.mustInner().(io.ReaderFrom); ok {
		if t, ok := newPieceCopier(r); ok {
			t.dst, t.dstConn = dst, c
			return t.copyAll("readfrom")
		}
	}
	return io.Copy(onlyWriter{c}, r)
}

// WriteTo copies to w until the peer ends its stream. [io.Copy] calls WriteTo.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	dstConn, _ := w.(*Conn)
	if dstConn != nil {
		w = dstConn.inner
	}
	// The kernel can copy from a socket only to a destination with a file descriptor.
	_, hasFD := w.(syscall.Conn)
	dst, ok := w.(io.ReaderFrom)
	if hasFD && ok {
		if t, ok := newPieceCopier(c); ok {
			t.dst, t.dstConn = dst, dstConn
			return t.copyAll("writeto")
		}
	}
	if dstConn != nil {
		w = onlyWriter{dstConn}
	}
	return io.Copy(w, onlyReader{c})
}

type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }

// A pieceCopier copies from src to dst in pieces. It calls dst.ReadFrom for each piece.
type pieceCopier struct {
	dst     io.ReaderFrom
	dstConn *Conn // the Conn over dst, or nil

	src         io.Reader         // the source that dst.ReadFrom gets
	srcConn     *Conn             // the Conn over src, or nil
	limitReader *io.LimitedReader // the most bytes to copy; nil: no limit
	// socket is used to wait until src has bytes. It is nil if src always has bytes.
	socket syscall.RawConn
}

// newPieceCopier returns a pieceCopier. ok is false if the kernel cannot copy from r.
func newPieceCopier(r io.Reader) (t pieceCopier, ok bool) {
	if lr, ok := r.(*io.LimitedReader); ok {
		t.limitReader, r = lr, lr.R
	}
	if c, ok := r.(*Conn); ok {
		t.srcConn, r = c, c.mustInner()
	}
	t.src = r
	// Test for methods, not for types: io.Copy wraps a *net.TCPConn and an *os.File in a
	// struct that hides some of their methods.
	sc, ok := r.(syscall.Conn)
	if !ok {
		return t, false
	}
	switch r := r.(type) {
	case interface{ Stat() (fs.FileInfo, error) }:
		// A pipe or a terminal is a file too, but does not always have bytes.
		info, err := r.Stat()
		return t, err == nil && info.Mode().IsRegular()
	case net.Conn:
		if !canSplice || !isStream(r) {
			return t, false
		}
		var err error
		t.socket, err = sc.SyscallConn()
		return t, err == nil
	}
	return t, false
}

// isStream reports whether c is known to be a stream of bytes, without messages.
func isStream(c net.Conn) bool {
	addr := c.LocalAddr()
	if addr == nil {
		return false
	}
	switch addr.Network() {
	case "tcp", "unix", "pipe":
		return true
	}
	return false
}

func (t *pieceCopier) copyAll(op string) (int64, error) {
	n, err := t.copyPieces()
	if t.srcConn != nil {
		err = t.srcConn.asErrIdle(op, err)
	}
	if t.dstConn != nil {
		err = t.dstConn.asErrIdle(op, err)
	}
	return n, err
}

func (t *pieceCopier) copyPieces() (copied int64, err error) {
	for {
		pieceLen := int64(maxPieceLen)
		if t.limitReader != nil {
			pieceLen = min(pieceLen, t.limitReader.N)
		}
		if pieceLen <= 0 {
			return copied, nil
		}
		if t.socket != nil {
			arrived, err := waitReadable(t.socket, t.src.(net.Conn))
			if arrived == 0 {
				return copied, err
			}
			pieceLen = min(pieceLen, arrived)
		}
		lr := &io.LimitedReader{R: t.src, N: pieceLen}
		n, err := t.dst.ReadFrom(lr)
		copied += n
		if t.limitReader != nil {
			t.limitReader.N -= pieceLen - lr.N
		}
		if n > 0 {
			t.touch()
		}
		if err != nil || lr.N > 0 { // lr.N > 0: src has ended
			return copied, err
		}
	}
}

func (t *pieceCopier) touch() {
	if t.srcConn != nil {
		t.srcConn.touch()
	}
	if t.dstConn != nil {
		t.dstConn.touch()
	}
}
