package sqlitestore

import (
	"context"
	"os"
	"time"
)

const (
	// SQLite truncates the log to walLimit bytes when it reuses the log.
	walLimit = 64 << 20
	// Every checkEvery the writer checks the log. If the log has more than
	// checkpointPages pages (4 MB), the writer requests a checkpoint.
	checkEvery      = 250 * time.Millisecond
	checkpointPages = 1000
	// resetTimeout is how long a checkpoint tries to reset the log while others write or
	// read.
	resetTimeout = 100 * time.Millisecond
	// Check warns if the log has more than largeWAL bytes.
	largeWAL = 256 << 20
)

// copyLog copies the log to the file while others write. resetLog copies the remainder
// and blocks writers. SQLite can then reuse the log.
const (
	readLogSize = `PRAGMA wal_checkpoint(NOOP)`
	copyLog     = `PRAGMA wal_checkpoint(PASSIVE)`
	resetLog    = `PRAGMA wal_checkpoint(RESTART)`
)

// runCheckpoints checkpoints the log when the writer requests it.
func (s *Store) runCheckpoints() {
	for {
		select {
		case <-s.closed:
			return
		case <-s.checkpointRequests:
		}
		if s.syncInterval > 0 { // commits do not sync the log, but a checkpoint does
			select {
			case <-s.closed: // Close syncs the log too
				return
			case <-time.After(s.syncInterval):
			}
		}
		if err := s.checkpointLog(); err != nil {
			s.log.Error("sqlitestore: the write-ahead log grows: cannot checkpoint it", "error", err)
		}
	}
}

func (s *Store) checkpointLog() error {
	var busy, pages, copied int64
	err := s.serviceDB.QueryRow(copyLog).Scan(&busy, &pages, &copied)
	if full := s.diskFull.Swap(false); err != nil || pages <= checkpointPages && !full {
		return err
	}
	busy = 1
	for begin := time.Now(); err == nil && busy != 0 && time.Since(begin) < resetTimeout; time.Sleep(lockPause) {
		err = s.serviceDB.QueryRow(resetLog).Scan(&busy, &pages, &copied)
	}
	return err
}

// requestCheckpoint requests a checkpoint if the log is long, or if the disk is full.
// With WithSyncInterval it always requests a checkpoint.
func (w *writer) requestCheckpoint(diskFull bool) {
	needsCheckpoint := diskFull || w.store.syncInterval > 0
	if time.Since(w.logCheckedAt) > checkEvery {
		w.logCheckedAt = time.Now()
		var busy, pages, copied int64
		err := w.conn.QueryRowContext(context.Background(), readLogSize).Scan(&busy, &pages, &copied)
		needsCheckpoint = needsCheckpoint || err == nil && pages > checkpointPages
	}
	if diskFull {
		w.store.diskFull.Store(true)
	}
	if needsCheckpoint {
		select {
		case w.store.checkpointRequests <- struct{}{}:
		default:
		}
	}
}

// WAL returns the size of the write-ahead log in bytes. Several hundred
// megabytes mean that a reader has kept a transaction open for long.
func (s *Store) WAL() int64 {
	st, err := os.Stat(s.path + "-wal")
	if err != nil {
		return 0
	}
	return st.Size()
}
