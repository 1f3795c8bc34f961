package idle

import (
	"io"
	"io/fs"
	"net"
	"syscall"
)

// # Copies
//
// io.Copy calls the ReadFrom of its destination or the WriteTo of its source once for the
// whole copy. These may use the kernel: sendfile from a file, splice between two sockets
// or from a socket to a file. Such a call may last for hours. A Conn therefore splits a
// copy into pieces, each of which counts as activity. While bytes move, a piece must not
// last long. So the size of a piece depends on the source:
//
//   - A regular file always has bytes to send, so a piece takes as long as
//     the peer takes to accept it.
//   - A socket may deliver only a few bytes a minute. A piece of fixed length
//     would count them only when it is full, so a piece is what has arrived by now.
//   - Any other source is copied through a buffer, as io.Copy does.

// ReadFrom copies from r until its end. [io.Copy] calls ReadFrom.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	if dst, ok := c.conn().(io.ReaderFrom); ok {
		if t, ok := transferFrom(r); ok {
			t.dst, t.to = dst, c
			return t.run("readfrom")
		}
	}
	return io.Copy(onlyWriter{c}, r)
}

// WriteTo copies to w until the peer ends its stream. [io.Copy] calls WriteTo.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	to, _ := w.(*Conn)
	if to != nil {
		w = to.under
	}
	// Only a destination with a file descriptor can take bytes from a socket without a
	// buffer.
	_, hasFD := w.(syscall.Conn)
	dst, ok := w.(io.ReaderFrom)
	if hasFD && ok {
		if t, ok := transferFrom(c); ok {
			t.dst, t.to = dst, to
			return t.run("writeto")
		}
	}
	if to != nil {
		w = onlyWriter{to}
	}
	return io.Copy(w, onlyReader{c})
}

type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }

// transfer is a copy in pieces. dst.ReadFrom may use the kernel for each.
type transfer struct {
	dst io.ReaderFrom
	to  *Conn // the Conn over dst, or nil

	src   io.Reader         // the source, as dst must see it
	from  *Conn             // the Conn over src, or nil
	limit *io.LimitedReader // bounds the copy; nil: no bound
	// socket is used to wait until src has bytes. It is nil if src always has bytes.
	socket syscall.RawConn
}

// transferFrom returns a transfer from r. It reports false if the kernel cannot help.
func transferFrom(r io.Reader) (t transfer, ok bool) {
	if lr, ok := r.(*io.LimitedReader); ok {
		t.limit, r = lr, lr.R
	}
	if c, ok := r.(*Conn); ok {
		t.from, r = c, c.conn()
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
		// A pipe or a terminal is a file too, but may deliver only a few bytes a minute.
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

// isStream reports whether c is known not to preserve the boundaries between writes.
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

func (t *transfer) run(op string) (int64, error) {
	n, err := t.copy()
	if t.from != nil {
		err = t.from.explain(op, err)
	}
	if t.to != nil {
		err = t.to.explain(op, err)
	}
	return n, err
}

func (t *transfer) copy() (copied int64, err error) {
	for {
		piece := int64(pieceSize)
		if t.limit != nil {
			piece = min(piece, t.limit.N)
		}
		if piece <= 0 {
			return copied, nil
		}
		if t.socket != nil {
			arrived, err := waitReadable(t.socket, t.src.(net.Conn))
			if arrived == 0 {
				return copied, err
			}
			piece = min(piece, arrived)
		}
		lr := &io.LimitedReader{R: t.src, N: piece}
		n, err := t.dst.ReadFrom(lr)
		copied += n
		if t.limit != nil {
			t.limit.N -= piece - lr.N
		}
		if n > 0 {
			t.touch()
		}
		if err != nil || lr.N > 0 { // lr.N > 0: src has ended
			return copied, err
		}
	}
}

func (t *transfer) touch() {
	if t.from != nil {
		t.from.touch()
	}
	if t.to != nil {
		t.to.touch()
	}
}
