package durable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/tickless/tickless/durable/store"
)

// ErrDamaged is returned by [Import] for a file that differs from what [Export] wrote.
var ErrDamaged = errors.New("durable: the file is damaged")

// Import reads a file that [Export] wrote, and adds its tasks to dst. The store that
// was exported may have another type and another number of shards. Tasks that dst
// already has do not change. Import pauses dst and leaves it paused: see [Copy].
//
// Import reads r to its end. If the file is damaged or incomplete, the error is an
// [ErrDamaged] that names the line. The tasks before the damage are imported; damaged
// tasks are not. After any error, Import may be repeated with the whole file while dst
// is still paused. O(n) for n tasks.
func Import(ctx context.Context, dst store.Store, r io.Reader) (Copied, error) {
	in := &lines{r: bufio.NewReaderSize(r, maxLine)}
	if err := in.head(); err != nil { // before anything is changed
		return Copied{}, err
	}
	c, err := newImporting(ctx, New(dst))
	if err != nil {
		return Copied{}, err
	}
	for end := false; !end; {
		var block []*store.Entry
		if block, end, err = in.block(); err != nil {
			break
		}
		for _, e := range block {
			if err := c.add(ctx, e); err != nil {
				return c.done, err
			}
		}
	}
	return c.done, errors.Join(c.flush(ctx), err)
}

// maxLine is more than the longest line has: two records of MaxRecord bytes in base64,
// and names and texts with every byte escaped.
const maxLine = 1 << 20

// A lineReader reads the lines of a file.
type lines struct {
	r     *bufio.Reader
	n     int    // lines read
	crc   uint32 // of all lines before the latest
	next  uint32 // of all lines including the latest
	tasks int    // tasks read
}

func (in *lines) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %w", ErrDamaged, in.n, fmt.Errorf(format, args...))
}

// readLine returns the next line, which is valid until the next call.
func (in *lines) line() ([]byte, error) {
	b, err := in.r.ReadSlice('\n')
	in.n++
	in.crc = in.next
	in.next = crc32.Update(in.next, castagnoli, b)
	switch {
	case err == bufio.ErrBufferFull:
		return nil, in.damaged("the line is longer than %d bytes", maxLine)
	case err == io.EOF:
		return nil, in.damaged("the file ends too early: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return nil, fmt.Errorf("durable: reading tasks: %w", err)
	}
	return b, nil
}

func (in *lines) head() error {
	b, err := in.line()
	if err != nil {
		return err
	}
	h, err := unmarshalHead(b)
	if err != nil {
		return in.damaged("this is no file of tasks: %w", err)
	}
	if h.Version != fileVersion {
		return fmt.Errorf("durable: the file has format version %d, but this program supports version %d", h.Version, fileVersion)
	}
	return nil
}

// readBlock returns the entries up to the next checksum, and verifies it. end says
// whether it is the end of the file.
func (in *lines) block() (block []*store.Entry, end bool, err error) {
	for size := 0; ; {
		b, err := in.line()
		if err != nil {
			return nil, false, err
		}
		if size += len(b); size > blockBytes+2*maxLine {
			return nil, false, in.damaged("there is no checksum within %d bytes", size)
		}
		e, sum, err := unmarshalLine(b)
		if err != nil {
			return nil, false, in.damaged("%w", err)
		}
		if sum == nil {
			block = append(block, e)
			continue
		}
		in.tasks += len(block)
		if got := fmt.Sprintf("%08x", in.crc); got != sum.CRC || in.tasks != *sum.Tasks {
			return nil, false, in.damaged("the checksum is %s after %d tasks, but the file says %s after %d", got, in.tasks, sum.CRC, *sum.Tasks)
		}
		if !sum.End {
			return block, false, nil
		}
		if _, err := in.r.ReadByte(); err == nil {
			return nil, false, in.damaged("there is data after the end")
		} else if err != io.EOF {
			return nil, false, fmt.Errorf("durable: reading tasks: %w", err)
		}
		return block, true, nil
	}
}
