package idle

import (
	"io"
	"io/fs"
	"net"
	"syscall"
)

// # Copies
//
// io.Copy gives the whole copy to the ReadFrom of its destination or to the
// WriteTo of its source, which may let the kernel do it: sendfile from a file,
// splice between two sockets or from a socket to a file. For us that is one call
// that may last for hours. It has to be cut into pieces, each of which counts as
// activity, and none of which may last for long while bytes move:
//
//   - From a file there is always something to send, so a piece takes as long as
//     the peer takes to accept it.
//   - A socket may give a few bytes a minute for ever. A piece of fixed length
//     would count them when it is full, so a piece is what has arrived by now.
//   - Of any other source nothing is known. It is read and written a buffer at a
//     time, as io.Copy does.

// ReadFrom copies from r until its end. [io.Copy] calls it.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	if dst, ok := c.conn().(io.ReaderFrom); ok {
		if t, ok := transferFrom(r); ok {
			t.dst, t.to = dst, c
			return t.run("readfrom")
		}
	}
	return io.Copy(onlyWriter{c}, r)
}

// WriteTo copies to w until the end of what the peer sends. [io.Copy] calls it.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	to, _ := w.(*Conn)
	if to != nil {
		w = to.under
	}
	// Only a destination with a file descriptor can take bytes from a socket without a
	// buffer in between.
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

// transfer is a copy in pieces to a destination that may know a fast way.
type transfer struct {
	dst io.ReaderFrom
	to  *Conn // the Conn over dst; nil: there is none

	src  io.Reader         // what dst knows a fast way from
	from *Conn             // the Conn over src; nil: there is none
	rest *io.LimitedReader // bounds the copy; nil: no bound
	// socket waits for src to have something; nil: it always does.
	socket syscall.RawConn
}

// transferFrom makes a transfer if there may be a fast way from r.
func transferFrom(r io.Reader) (t transfer, ok bool) {
	if lr, ok := r.(*io.LimitedReader); ok {
		t.rest, r = lr, lr.R
	}
	if c, ok := r.(*Conn); ok {
		t.from, r = c, c.conn()
	}
	t.src = r
	// By methods rather than types: io.Copy passes a *net.TCPConn and an
	// *os.File in a struct that hides some of their methods.
	sc, ok := r.(syscall.Conn)
	if !ok {
		return t, false
	}
	switch r := r.(type) {
	case interface{ Stat() (fs.FileInfo, error) }:
		// A pipe or a terminal is a file that may give a few bytes a minute.
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

// isStream reports whether c is known to keep no boundaries between writes.
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
		if t.rest != nil {
			piece = min(piece, t.rest.N)
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
		if t.rest != nil {
			t.rest.N -= piece - lr.N
		}
		if n > 0 {
			t.touch()
		}
		if err != nil || lr.N > 0 { // lr.N > 0: the end of src
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
