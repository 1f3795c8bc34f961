package sqlitestore

import (
	"context"
	"os"
	"time"
)

const (
	// walLimit is the size that the log keeps when it begins again.
	walLimit = 64 << 20
	// checkEvery is how often the writer looks how long the log is, and moveFrames from how many
	// pages on it is checkpointed: 4 MB. A short log is written over again soon, which the disk
	// syncs sooner than one that grows; under load it has some 40 MB by the next look.
	checkEvery = 250 * time.Millisecond
	moveFrames = 1000
	// finishFor is how long a checkpoint tries to have the log begin again, while others
	// write or read.
	finishFor = 100 * time.Millisecond
	// largeWAL is the size of a log that Check warns of.
	largeWAL = 256 << 20
)

// What is done to the log. It begins again once all of it is in the file: most is moved
// there beside the writers, and what they have written meanwhile while they wait.
const (
	askLog    = `PRAGMA wal_checkpoint(NOOP)`
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

// mayCheckpoint asks for a checkpoint if much was written, or the disk is full: the log may
// have room to give.
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

// WAL returns the size of the file's write-ahead log in bytes. Some hundred megabytes or more
// mean that a reader keeps a transaction open for long: SQLite uses the log anew when it ends.
func (s *Store) WAL() int64 {
	st, err := os.Stat(s.path + "-wal")
	if err != nil {
		return 0
	}
	return st.Size()
}
