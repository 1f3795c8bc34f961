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

// Import adds the tasks of a file that [Export] wrote to dst. Tasks that dst already
// has do not change. Import pauses dst and leaves it paused: see [Copy].
//
// If the file is damaged or incomplete, the error is an [ErrDamaged] that names the
// line. Tasks before the damage are imported. After an error, Import may be repeated
// with the whole file while dst is still paused. O(n) for n tasks.
func Import(ctx context.Context, dst store.Store, r io.Reader) (Copied, error) {
	in := &lineReader{r: bufio.NewReaderSize(r, maxLine)}
	if err := in.readHead(); err != nil { // before anything is changed
		return Copied{}, err
	}
	c, err := newImporter(ctx, New(dst))
	if err != nil {
		return Copied{}, err
	}
	for end := false; !end; {
		var block []*store.Entry
		if block, end, err = in.readBlock(); err != nil {
			break
		}
		for _, e := range block {
			if err := c.add(ctx, e); err != nil {
				return c.copied, err
			}
		}
	}
	return c.copied, errors.Join(c.flush(ctx), err)
}

// maxLine is more than the longest line has: two records of MaxRecord bytes in base64,
// and names and texts with every byte escaped.
const maxLine = 1 << 20

type lineReader struct {
	r       *bufio.Reader
	n       int    // lines read
	crc     uint32 // of all lines before the latest
	nextCRC uint32 // of all lines including the latest
	tasks   int    // tasks read
}

func (in *lineReader) damagedError(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %w", ErrDamaged, in.n, fmt.Errorf(format, args...))
}

// readLine returns the next line, which is valid until the next call.
func (in *lineReader) readLine() ([]byte, error) {
	b, err := in.r.ReadSlice('\n')
	in.n++
	in.crc = in.nextCRC
	in.nextCRC = crc32.Update(in.nextCRC, castagnoli, b)
	switch {
	case err == bufio.ErrBufferFull:
		return nil, in.damagedError("the line is longer than %d bytes", maxLine)
	case err == io.EOF:
		return nil, in.damagedError("the file ends too early: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return nil, fmt.Errorf("durable: reading tasks: %w", err)
	}
	return b, nil
}

func (in *lineReader) readHead() error {
	b, err := in.readLine()
	if err != nil {
		return err
	}
	h, err := unmarshalHead(b)
	if err != nil {
		return in.damagedError("this is not a file of exported tasks: %w", err)
	}
	if h.Version != fileVersion {
		return fmt.Errorf("durable: the file has format version %d, but this program supports version %d", h.Version, fileVersion)
	}
	return nil
}

// readBlock returns the entries up to the next checksum, and verifies the checksum. end
// says whether the file ends after it.
func (in *lineReader) readBlock() (block []*store.Entry, end bool, err error) {
	for size := 0; ; {
		b, err := in.readLine()
		if err != nil {
			return nil, false, err
		}
		if size += len(b); size > blockBytes+2*maxLine {
			return nil, false, in.damagedError("there is no checksum within %d bytes", size)
		}
		e, sum, err := unmarshalLine(b)
		if err != nil {
			return nil, false, in.damagedError("%w", err)
		}
		if sum == nil {
			block = append(block, e)
			continue
		}
		in.tasks += len(block)
		if got := fmt.Sprintf("%08x", in.crc); got != sum.CRC || in.tasks != *sum.Tasks {
			return nil, false, in.damagedError("the checksum is %s after %d tasks, but the file says %s after %d", got, in.tasks, sum.CRC, *sum.Tasks)
		}
		if !sum.End {
			return block, false, nil
		}
		if _, err := in.r.ReadByte(); err == nil {
			return nil, false, in.damagedError("there is data after the end")
		} else if err != io.EOF {
			return nil, false, fmt.Errorf("durable: reading tasks: %w", err)
		}
		return block, true, nil
	}
}
