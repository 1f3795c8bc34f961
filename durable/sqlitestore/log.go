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
// of it there, beside the writer, which then moves the little that it has written
// meanwhile.
const moveLog = `PRAGMA wal_checkpoint(PASSIVE)`

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
		if _, err := s.tend.ExecContext(context.Background(), moveLog); err != nil && !isBusy(err) {
			s.log.Error("sqlitestore: the log cannot be checkpointed, and grows", "error", err)
			continue
		}
		s.tail.Store(true)
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
	if w.s.tail.Swap(false) && w.s.interval == 0 {
		_, _ = w.conn.ExecContext(context.Background(), moveLog)
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
