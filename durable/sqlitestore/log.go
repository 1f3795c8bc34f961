package sqlitestore

import (
	"context"
	"os"
	"time"
)

const (
	// walLimit is the size to which the log shrinks when it is reused.
	walLimit = 64 << 20
	// checkEvery is how often the writer checks the length of the log, and moveFrames
	// is the length in pages from which it checkpoints the log: 4 MB. A short log is
	// soon overwritten, and the disk syncs that faster than a growing file. Under load
	// the log has some 40 MB at the next check.
	checkEvery = 250 * time.Millisecond
	moveFrames = 1000
	// finishFor is how long a checkpoint tries to empty the log while others write or
	// read.
	finishFor = 100 * time.Millisecond
	// largeWAL is the size of a log for which Check warns.
	largeWAL = 256 << 20
)

// Statements for the log. SQLite reuses the log from its beginning once all of it has
// been copied to the file. Most of it is copied while others write, and the remainder
// while they wait.
const (
	askLog    = `PRAGMA wal_checkpoint(NOOP)`
	moveLog   = `PRAGMA wal_checkpoint(PASSIVE)`
	finishLog = `PRAGMA wal_checkpoint(RESTART)`
)

// tendLog checkpoints the log when the writer requests it.
func (s *Store) tendLog() {
	for {
		select {
		case <-s.over:
			return
		case <-s.dirty:
		}
		if s.interval > 0 { // nobody else syncs the log
			select {
			case <-s.over: // and Close does
				return
			case <-time.After(s.interval):
			}
		}
		if err := s.checkpoint(); err != nil {
			s.log.Error("sqlitestore: the log cannot be checkpointed, and grows", "error", err)
		}
	}
}

func (s *Store) checkpoint() error {
	var busy, frames, moved int64
	err := s.tend.QueryRow(moveLog).Scan(&busy, &frames, &moved)
	if full := s.full.Swap(false); err != nil || frames <= moveFrames && !full {
		return err
	}
	busy = 1
	for begin := time.Now(); err == nil && busy != 0 && time.Since(begin) < finishFor; time.Sleep(pause) {
		err = s.tend.QueryRow(finishLog).Scan(&busy, &frames, &moved)
	}
	return err
}

// mayCheckpoint requests a checkpoint if much was written, or if the disk is full: the
// log may then free space.
func (w *writer) mayCheckpoint(full bool) {
	ask := full || w.s.interval > 0
	if time.Since(w.looked) > checkEvery {
		w.looked = time.Now()
		var busy, frames, moved int64
		err := w.conn.QueryRowContext(context.Background(), askLog).Scan(&busy, &frames, &moved)
		ask = ask || err == nil && frames > moveFrames
	}
	if full {
		w.s.full.Store(true)
	}
	if ask {
		select {
		case w.s.dirty <- struct{}{}:
		default:
		}
	}
}

// WAL returns the size of the file's write-ahead log in bytes. More than some hundred
// megabytes mean that a reader keeps a transaction open for long. SQLite reuses the log
// when that transaction ends.
func (s *Store) WAL() int64 {
	st, err := os.Stat(s.path + "-wal")
	if err != nil {
		return 0
	}
	return st.Size()
}
