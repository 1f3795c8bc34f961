package main

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// barePebble stores what a store has to, and nothing else: a task under its key, and an
// entry of an index under when it is due. There is no lookup of what a key had before,
// no memory of senders, and nothing in memory.
type barePebble struct{ db *pebble.DB }

func openPebble(dir string) (side, error) {
	// As package diskstore opens it.
	o := &pebble.Options{
		Logger:                      silent{},
		MemTableSize:                16 << 20,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
	}
	db, err := pebble.Open(dir, o)
	return &barePebble{db}, err
}

type silent struct{ pebble.Logger }

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	pebble.DefaultLogger.Fatalf(format, args...)
}

func (x *barePebble) schedule(_ context.Context, tasks []task) error {
	b := x.db.NewBatch()
	defer b.Close()
	for i := range tasks {
		t := &tasks[i]
		due := binary.BigEndian.AppendUint64([]byte{'d'}, uint64(t.due.UnixMicro()))
		if err := errors.Join(b.Set(append(due, t.key...), nil, nil), b.Set([]byte("t"+t.key), t.body, nil)); err != nil {
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
