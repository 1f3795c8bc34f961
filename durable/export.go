package durable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Export writes all tasks of a store to w, in the format that docs/durable.md
// describes, and returns how many. [Import] reads it. First stop the workers and
// clients of the store: see [Copy]. If the error is [ErrChanged], the file is valid,
// but may lack tasks. The cost is that of [Client.List].
func Export(ctx context.Context, w io.Writer, src store.Store) (int, error) {
	x := &exporter{w: bufio.NewWriterSize(w, 64<<10)}
	if err := x.writeLine(fileHead{Format: fileFormat, Version: fileVersion, Time: fileTime(store.TimeOf(time.Now()))}); err != nil {
		return 0, err
	}
	err := forEachEntry(ctx, New(src), x.add)
	if err == nil || errors.Is(err, ErrChanged) {
		err = errors.Join(x.finish(), err)
	}
	return x.tasks, err
}

type exporter struct {
	w             *bufio.Writer
	crc           uint32 // of all bytes written
	tasks         int    // tasks written
	sinceChecksum int    // bytes since the latest checksum
}

// blockBytes is how many bytes Export writes before a checksum. Import buffers them
// until it has verified the checksum.
const blockBytes = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (x *exporter) writeLine(v any) error {
	b, err := marshalLine(v)
	if err != nil {
		return err
	}
	x.crc = crc32.Update(x.crc, castagnoli, b)
	x.sinceChecksum += len(b)
	if _, err := x.w.Write(b); err != nil {
		return fmt.Errorf("durable: writing tasks: %w", err)
	}
	return nil
}

func (x *exporter) add(_ context.Context, e *store.Entry) error {
	if err := x.writeLine(fileLineOf(e)); err != nil {
		return err
	}
	x.tasks++
	if x.sinceChecksum < blockBytes {
		return nil
	}
	return x.writeChecksum(false)
}

func (x *exporter) writeChecksum(end bool) error {
	x.sinceChecksum = 0
	return x.writeLine(fileChecksum{Tasks: &x.tasks, CRC: fmt.Sprintf("%08x", x.crc), End: end})
}

func (x *exporter) finish() error {
	if err := x.writeChecksum(true); err != nil {
		return err
	}
	if err := x.w.Flush(); err != nil {
		return fmt.Errorf("durable: writing tasks: %w", err)
	}
	return nil
}
