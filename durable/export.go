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

// Export writes all tasks of a store to w, in the format that [Import] reads, and
// returns how many. docs/durable.md describes the format. The store must be out of use
// and does not change: see [Copy]. If the error is [ErrChanged], the file is complete
// and has the tasks that were read. Export buffers its writes. The cost is that of
// [Client.List].
func Export(ctx context.Context, w io.Writer, src store.Store) (int, error) {
	x := &exporting{w: bufio.NewWriterSize(w, 64<<10)}
	if err := x.line(fileHead{Format: fileFormat, Version: fileVersion, Time: moment(store.TimeOf(time.Now()))}); err != nil {
		return 0, err
	}
	err := forEach(ctx, New(src), x.add)
	if err == nil || errors.Is(err, ErrChanged) {
		err = errors.Join(x.end(), err)
	}
	return x.tasks, err
}

// An exporter is the state of one call of Export.
type exporting struct {
	w     *bufio.Writer
	crc   uint32 // of all bytes written
	tasks int    // tasks written
	block int    // bytes since the latest checksum
}

// blockBytes is how many bytes follow one another without a checksum. A reader must
// buffer them until it can verify them.
const blockBytes = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (x *exporting) line(v any) error {
	b, err := marshalLine(v)
	if err != nil {
		return err
	}
	x.crc = crc32.Update(x.crc, castagnoli, b)
	x.block += len(b)
	if _, err := x.w.Write(b); err != nil {
		return fmt.Errorf("durable: writing tasks: %w", err)
	}
	return nil
}

func (x *exporting) add(_ context.Context, e *store.Entry) error {
	if err := x.line(lineOf(e)); err != nil {
		return err
	}
	x.tasks++
	if x.block < blockBytes {
		return nil
	}
	return x.sum(false)
}

func (x *exporting) sum(end bool) error {
	x.block = 0
	return x.line(fileSum{Tasks: &x.tasks, CRC: fmt.Sprintf("%08x", x.crc), End: end})
}

func (x *exporting) end() error {
	if err := x.sum(true); err != nil {
		return err
	}
	if err := x.w.Flush(); err != nil {
		return fmt.Errorf("durable: writing tasks: %w", err)
	}
	return nil
}
