package durable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

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
func Import(ctx context.Context, dst store.Store, r io.Reader, opts ...ImportOption) (Copied, error) {
	newNames := make(map[string]string)
	for i, o := range opts {
		panicIfNil("Import", i, o)
		o.applyToImport(newNames)
	}
	in := &lineReader{r: bufio.NewReaderSize(r, maxLineBytes)}
	h, err := in.readHeader()
	if err != nil { // before anything is changed
		return Copied{}, err
	}
	c, err := newImporter(ctx, New(dst), h.PausedHandlers)
	if err != nil {
		return Copied{}, err
	}
	for isLastBlock := false; !isLastBlock; {
		var block []*store.Entry
		if block, isLastBlock, err = in.readBlock(); err != nil {
			break
		}
		for _, e := range block {
			for _, t := range []*store.Task{&e.Task, e.NextTask} {
				if t != nil && newNames[t.Handler] != "" {
					t.Handler = newNames[t.Handler]
				}
			}
			if err := c.addEntry(ctx, e); err != nil {
				return c.copied, err
			}
		}
	}
	return c.copied, errors.Join(c.sendItems(ctx), c.refusal, err)
}

// An ImportOption changes an [Import].
type ImportOption interface {
	applyToImport(newNames map[string]string)
}

type importOption func(newNames map[string]string)

func (f importOption) applyToImport(newNames map[string]string) { f(newNames) }

// RenameHandler gives the tasks of a handler to a handler with another name. It panics if a
// name is not valid: see [Task.Handler].
func RenameHandler(from, to string) ImportOption {
	for _, name := range []string{from, to} {
		if !store.IsName(name) {
			panic(fmt.Sprintf("durable: RenameHandler: the name %q must have "+nameRule, name))
		}
	}
	return importOption(func(newNames map[string]string) { newNames[from] = to })
}

// maxLineBytes is more than any line needs. The longest line has two records of
// MaxRecord bytes in base64, and names and texts with every byte escaped.
const maxLineBytes = 1 << 20

type lineReader struct {
	r             *bufio.Reader
	lineNumber    int    // lines read
	crcBeforeLine uint32 // of all lines before the latest line
	crcAfterLine  uint32 // of all lines including the latest line
	taskCount     int    // tasks read
}

func (in *lineReader) damagedError(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if text := err.Error(); len(text) > 200 { // it may quote the file
		err = errors.New(strings.ToValidUTF8(text[:200], ""))
	}
	return fmt.Errorf("%w: line %d: %w", ErrDamaged, in.lineNumber, err)
}

// readLine returns the next line. The line is valid until the next call.
func (in *lineReader) readLine() ([]byte, error) {
	b, err := in.r.ReadSlice('\n')
	in.lineNumber++
	in.crcBeforeLine = in.crcAfterLine
	in.crcAfterLine = crc32.Update(in.crcAfterLine, crcTable, b)
	switch {
	case err == bufio.ErrBufferFull:
		return nil, in.damagedError("the line is longer than %d bytes", maxLineBytes)
	case err == io.EOF:
		return nil, in.damagedError("the file ends too early: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return nil, fmt.Errorf("durable: reading tasks: %w", err)
	}
	return b, nil
}

func (in *lineReader) readHeader() (h fileHeader, err error) {
	b, err := in.readLine()
	if err != nil {
		return h, err
	}
	h, err = unmarshalHeader(b)
	if err != nil {
		return h, in.damagedError("this is not a file of exported tasks: %w", err)
	}
	if h.Version != fileVersion {
		return h, fmt.Errorf("durable: the file has format version %d, but this program supports version %d", h.Version, fileVersion)
	}
	return h, nil
}

// readBlock returns the entries up to the next checksum, and verifies the checksum.
// isLastBlock reports whether the file ends after the checksum.
func (in *lineReader) readBlock() (block []*store.Entry, isLastBlock bool, err error) {
	for size := 0; ; {
		b, err := in.readLine()
		if err != nil {
			return nil, false, err
		}
		if size += len(b); size > bytesPerChecksum+2*maxLineBytes {
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
		in.taskCount += len(block)
		if got := fmt.Sprintf("%08x", in.crcBeforeLine); got != sum.CRC || in.taskCount != *sum.Tasks {
			return nil, false, in.damagedError("the checksum is %s after %d tasks, but the file says %s after %d", got, in.taskCount, sum.CRC, *sum.Tasks)
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
