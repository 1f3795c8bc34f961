package diskstore

import (
	"fmt"
	"math"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"github.com/tickless/tickless/durable/store"
)

const (
	// memTableSize is how much is written until a table is made of it. There may be
	// memTables of them, full or filling, and as much has to be read again after a
	// crash: a few hundred milliseconds.
	memTableSize = 16 << 20
	memTables    = 4
	// cacheSize is of blocks of tables, and of their filters, which take 1.25 bytes a
	// task: those of 20 million tasks are at hand.
	cacheSize = 32 << 20
	// walBytesPerSync has the kernel write the log while it grows, so that the sync of
	// a large batch does not wait for all of it.
	walBytesPerSync = 512 << 10
	// stopWrites is how many tables one above the other in level 0 stop writes, unless the
	// disk is full: see room.go. So it is not Pebble that does it.
	stopWrites = 24
	// databaseFormat is Pebble's version of the files. It has a log whose damage in the
	// middle is told from its end after a crash. It is not the newest that there is: with
	// that another version of Pebble alone would have older programs refuse the directory.
	databaseFormat = pebble.FormatValueSeparation
)

// checkFormat returns an error if a newer version of Pebble has given the files a format
// that this one cannot read.
func checkFormat(fsys vfs.FS, dir string) error {
	version, err := atomicfs.ReadMarker(fsys, dir, "format-version")
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil || n <= uint64(pebble.FormatNewest) { // Pebble says what is wrong if it is none
		return nil
	}
	return fmt.Errorf("diskstore: %w: the database has format %d, and this program reads up to %d", store.ErrSchema, n, pebble.FormatNewest)
}

// pebbleOptions are for many small tasks that come and go, and for little memory.
func (s *Store) pebbleOptions() *pebble.Options {
	o := &pebble.Options{
		FS:                          s.gate,
		Logger:                      &logger{log: s.config.log, fail: s.fail},
		Cache:                       pebble.NewCache(cacheSize),
		MemTableSize:                uint64(s.config.memTable),
		MemTableStopWritesThreshold: memTables,
		FormatMajorVersion:          databaseFormat,
		WALBytesPerSync:             walBytesPerSync,

		DisableAutomaticCompactions: s.config.still,

		// Reads are of one key, or of the head of an index: they stand more tables in
		// level 0 than the default, which stops writes at 12.
		L0CompactionThreshold: 4,
		L0StopWritesThreshold: math.MaxInt32,
		// A second compaction may run when the first falls behind.
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		EventListener: &pebble.EventListener{
			FlushEnd:        func(pebble.FlushInfo) { s.room.moved.Store(true); soon(s.flushed) },
			CompactionEnd:   func(pebble.CompactionInfo) { s.room.moved.Store(true) },
			WriteStallBegin: func(pebble.WriteStallBeginInfo) { s.gate.stall(true) },
			WriteStallEnd:   func() { s.gate.stall(false) },
			// Whoever reads gets the error too, and by default would be parked. As long as
			// the store is being opened that is Open, which closes the database then.
			DataCorruption: func(i pebble.DataCorruptionInfo) {
				if s.gate.armed.Load() {
					s.fail(i.Details)
				}
			},
			WALCreated: func(i pebble.WALCreateInfo) {
				if i.Err == nil {
					s.newestLog.Store(int64(i.FileNum))
				}
			},
		},
	}
	for i := range o.Levels {
		// Whether there is a task with a key is asked for each that is scheduled.
		o.Levels[i].FilterPolicy = taskFilter{bloom.FilterPolicy(10)}
	}
	return o
}

// A taskFilter is a filter of the keys of tasks alone: nothing else is looked for by its
// whole key.
type taskFilter struct{ pebble.FilterPolicy }

func (f taskFilter) MayContain(t pebble.FilterType, filter, key []byte) bool {
	return !isTask(key) || f.FilterPolicy.MayContain(t, filter, key)
}

func (f taskFilter) NewWriter(t pebble.FilterType) pebble.FilterWriter {
	return taskFilterWriter{f.FilterPolicy.NewWriter(t)}
}

type taskFilterWriter struct{ pebble.FilterWriter }

func (w taskFilterWriter) AddKey(key []byte) {
	if isTask(key) {
		w.FilterWriter.AddKey(key)
	}
}

func isTask(key []byte) bool { return len(key) >= spaceLen && key[spaceLen-1] == spaceTask }
