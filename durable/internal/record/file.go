package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// An exported file has lines of JSON: a header, a line for each task, and checksums. A
// checksum covers all bytes before its line. The last line is a checksum that marks the end.

const (
	fileFormat  = "tickless tasks"
	fileVersion = 1
	// bytesPerChecksum is how many bytes a Writer writes before a checksum. A Reader buffers
	// them until it has verified the checksum.
	bytesPerChecksum = 1 << 20
	// maxLineBytes is more than any line needs. The longest line has two records of
	// MaxRecord bytes in base64, and names and texts with every byte escaped.
	maxLineBytes = 1 << 20
)

// ErrDamagedFile is the error of a Reader for a file that differs from what a Writer wrote.
var ErrDamagedFile = errors.New("durable: the file is damaged")

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// A Writer writes a file.
type Writer struct {
	Count int // tasks written

	w                  *bufio.Writer
	crcOfAll           uint32 // of all bytes written
	bytesSinceChecksum int    // bytes since the latest checksum
}

// NewWriter writes the header of a file: which handlers are paused.
func NewWriter(w io.Writer, paused map[string]store.HandlerPause) (*Writer, error) {
	x := &Writer{w: bufio.NewWriterSize(w, 64<<10)}
	h := fileHeader{Format: fileFormat, Version: fileVersion, Time: fileTime(store.TimeOf(time.Now())), PausedHandlers: make(map[string]filePause)}
	for name, p := range paused {
		h.PausedHandlers[name] = filePause{fileTime(p.Since), p.Note}
	}
	return x, x.writeLine(h)
}

// Add writes an entry.
func (x *Writer) Add(e *store.Entry) error {
	if err := x.writeLine(fileEntryOf(e)); err != nil {
		return err
	}
	x.Count++
	if x.bytesSinceChecksum < bytesPerChecksum {
		return nil
	}
	return x.writeChecksum(false)
}

// Close writes the end of the file.
func (x *Writer) Close() error {
	if err := x.writeChecksum(true); err != nil {
		return err
	}
	return writeError(x.w.Flush())
}

func (x *Writer) writeChecksum(isLast bool) error {
	x.bytesSinceChecksum = 0
	return x.writeLine(fileChecksum{Tasks: &x.Count, CRC: fmt.Sprintf("%08x", x.crcOfAll), End: isLast})
}

func (x *Writer) writeLine(v any) error {
	b, err := marshalLine(v)
	if err != nil {
		return err
	}
	x.crcOfAll = crc32.Update(x.crcOfAll, crcTable, b)
	x.bytesSinceChecksum += len(b)
	_, err = x.w.Write(b)
	return writeError(err)
}

func writeError(err error) error {
	if err != nil {
		return fmt.Errorf("durable: writing tasks: %w", err)
	}
	return nil
}

func marshalLine(v any) ([]byte, error) {
	var b bytes.Buffer
	x := json.NewEncoder(&b)
	x.SetEscapeHTML(false)
	err := x.Encode(v) // with a newline
	return b.Bytes(), err
}

// A Reader reads a file that a Writer wrote.
type Reader struct {
	PausedHandlers map[string]store.HandlerPause // when the file was written

	r             *bufio.Reader
	lineNumber    int    // lines read
	crcBeforeLine uint32 // of all lines before the latest line
	crcAfterLine  uint32 // of all lines including the latest line
	taskCount     int    // tasks read
}

// NewReader reads the header of a file.
func NewReader(r io.Reader) (*Reader, error) {
	in := &Reader{r: bufio.NewReaderSize(r, maxLineBytes), PausedHandlers: make(map[string]store.HandlerPause)}
	b, err := in.readLine()
	if err != nil {
		return nil, err
	}
	var h fileHeader
	if err = json.Unmarshal(b, &h); err == nil && h.Format != fileFormat { // a later version may have other fields
		err = fmt.Errorf("unknown format %q", h.Format)
	}
	if err != nil {
		return nil, in.damagedError("this is not a file of exported tasks: %w", err)
	}
	if h.Version != fileVersion {
		return nil, fmt.Errorf("durable: the file has format version %d, but this program supports version %d", h.Version, fileVersion)
	}
	for name, p := range h.PausedHandlers {
		in.PausedHandlers[name] = store.HandlerPause{Since: store.Time(p.Since), Note: p.Note}
	}
	return in, nil
}

// ReadBlock returns the entries up to the next checksum, and verifies the checksum.
// isLast reports whether the file ends after the checksum.
func (in *Reader) ReadBlock() (block []*store.Entry, isLast bool, err error) {
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

// readLine returns the next line. The line is valid until the next call.
func (in *Reader) readLine() ([]byte, error) {
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

func (in *Reader) damagedError(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if text := err.Error(); len(text) > 200 { // it may quote the file
		err = errors.New(strings.ToValidUTF8(text[:200], ""))
	}
	return fmt.Errorf("%w: line %d: %w", ErrDamagedFile, in.lineNumber, err)
}
