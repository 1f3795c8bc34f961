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
// but may lack tasks. If it is a [store.ErrDamaged], the file lacks damaged tasks. The cost
// is that of [Client.List].
func Export(ctx context.Context, w io.Writer, src store.Store) (int, error) {
	c, x := New(src), &exporter{w: bufio.NewWriterSize(w, 64<<10)}
	paused, err := c.PausedHandlers(ctx)
	if err != nil {
		return 0, err
	}
	if err := x.writeLine(fileHeader{Format: fileFormat, Version: fileVersion, Time: fileTime(store.TimeOf(time.Now())), PausedHandlers: paused}); err != nil {
		return 0, err
	}
	err = forEachEntry(ctx, c, x.addEntry)
	if isComplete(err) {
		err = errors.Join(x.finish(), err)
	}
	return x.taskCount, err
}

type exporter struct {
	w                  *bufio.Writer
	crcOfAll           uint32 // of all bytes written
	taskCount          int    // tasks written
	bytesSinceChecksum int    // bytes since the latest checksum
}

// bytesPerChecksum is how many bytes Export writes before a checksum. Import buffers
// them until it has verified the checksum.
const bytesPerChecksum = 1 << 20

var crcTable = crc32.MakeTable(crc32.Castagnoli)

func (x *exporter) writeLine(v any) error {
	b, err := marshalLine(v)
	if err != nil {
		return err
	}
	x.crcOfAll = crc32.Update(x.crcOfAll, crcTable, b)
	x.bytesSinceChecksum += len(b)
	if _, err := x.w.Write(b); err != nil {
		return fmt.Errorf("durable: writing tasks: %w", err)
	}
	return nil
}

func (x *exporter) addEntry(_ context.Context, e *store.Entry) error {
	if err := x.writeLine(fileEntryOf(e)); err != nil {
		return err
	}
	x.taskCount++
	if x.bytesSinceChecksum < bytesPerChecksum {
		return nil
	}
	return x.writeChecksum(false)
}

func (x *exporter) writeChecksum(isLast bool) error {
	x.bytesSinceChecksum = 0
	return x.writeLine(fileChecksum{Tasks: &x.taskCount, CRC: fmt.Sprintf("%08x", x.crcOfAll), End: isLast})
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
