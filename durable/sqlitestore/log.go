package sqlitestore

import (
	"context"
	"os"
	"time"
)

const (
	// walLimit is the size that the log keeps when it begins again.
	walLimit = 64 << 20
	// checkEvery is after how many tasks that were written the writer looks how long the log
	// is, and moveFrames from how many pages on it is checkpointed: 40 MB.
	checkEvery = 500
	moveFrames = 10_000
	// largeWAL is the size of a log that Check warns of.
	largeWAL = 256 << 20
)

// The log begins again once all of it is in the file. A connection of its own moves most
// of it there, beside the writer. The writer then moves what was written meanwhile, and keeps
// those of other processes from writing for that long: they would always add some.
const (
	moveLog   = `PRAGMA wal_checkpoint(PASSIVE)`
	finishLog = `PRAGMA wal_checkpoint(RESTART)`
)

// tendLog checkpoints the log when the writer asks for it.
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
		var busy, frames, moved int64
		if err := s.tend.QueryRowContext(context.Background(), moveLog).Scan(&busy, &frames, &moved); err != nil {
			s.log.Error("sqlitestore: the log cannot be checkpointed, and grows", "error", err)
			continue
		}
		s.tail.Store(frames > moveFrames)
	}
}

// checkpoint asks for a checkpoint if much was written, and finishes one.
func (w *writer) checkpoint() {
	ask := w.written > 0 && w.s.interval > 0
	if w.written > checkEvery {
		w.written = 0
		var busy, frames, moved int64
		err := w.conn.QueryRowContext(context.Background(), `PRAGMA wal_checkpoint(NOOP)`).Scan(&busy, &frames, &moved)
		ask = ask || err == nil && frames > moveFrames
	}
	if ask {
		select {
		case w.s.dirty <- struct{}{}:
		default:
		}
	}
	if w.s.tail.Load() {
		var busy, frames, moved int64
		err := w.conn.QueryRowContext(context.Background(), finishLog).Scan(&busy, &frames, &moved)
		w.s.tail.Store(err != nil || busy != 0) // it tries again after the next transaction
	}
}

// WAL returns the size of the file's log in bytes. A log of some hundred megabytes or more
// shows that somebody reads the file for long: the log begins again when he ends.
func (s *Store) WAL() int64 {
	st, err := os.Stat(s.path + "-wal")
	if err != nil {
		return 0
	}
	return st.Size()
}
