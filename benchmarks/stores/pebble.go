package main

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// barePebble stores what package diskstore stores of a task, byte for byte as many, and
// nothing else: the task under its key, and a key of the index under when it is due.
// There is no lookup of what a key had before, no memory of senders, no shard that counts
// its tasks, and nothing in memory.
type barePebble struct{ db *pebble.DB }

// bareOptions are those of package diskstore, but for the filters of its tables, which
// are for lookups.
func bareOptions() *pebble.Options {
	return &pebble.Options{
		Logger:                      silent{},
		CacheSize:                   32 << 20,
		MemTableSize:                16 << 20,
		MemTableStopWritesThreshold: 4,
		FormatMajorVersion:          pebble.FormatNewest,
		WALBytesPerSync:             512 << 10,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
	}
}

func openPebble(dir string) (side, error) {
	db, err := pebble.Open(dir, bareOptions())
	return &barePebble{db}, err
}

type silent struct{ pebble.Logger }

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	pebble.DefaultLogger.Fatalf(format, args...)
}

const (
	bareTask  = "00t"     // and the task's key
	bareIndex = "00p0000" // and 8 bytes of time, and the task's key
	// bareHead is what stands in front of a body: what the store, and then the client,
	// have to say of the task.
	bareHead = 23 + 8
)

func (x *barePebble) schedule(_ context.Context, tasks []task) error {
	b := x.db.NewBatch()
	defer b.Close()
	var key, value []byte
	for i := range tasks {
		t := &tasks[i]
		key = append(append(key[:0], bareTask...), t.key...)
		value = append(append(value[:0], make([]byte, bareHead)...), t.body...)
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
		key = binary.BigEndian.AppendUint64(append(key[:0], bareIndex...), uint64(t.due.UnixMicro()))
		if err := b.Set(append(key, t.key...), nil, nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.Sync)
}

func (*barePebble) work(func([]byte)) (func() error, error) {
	return nil, errors.New("bare Pebble has no worker")
}

func (*barePebble) left(context.Context) (int64, error) { return 0, nil }
func (x *barePebble) close() error                      { return x.db.Close() }
