package diskstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A store that has no room for its log has failed. So it accepts no new tasks when the
// disk is nearly full, but still what ends tasks, or moves them on.
//
// Tables in level 0 become too many when compactions do not keep up with what is written,
// and then writes wait. When it is for want of room that no compaction gets on nothing
// waits for them: it is what ends tasks that makes room.
const (
	// leastRoom is the room that has to be left: for what is in memory to be written
	// away, and for a compaction. On a small disk it is an eighth of it.
	leastRoom = 64 << 20
	// mostRoom is the room that has to be left when there are many tasks, as much as their
	// tables have: what ends all of them is written too, and compactions write tables anew
	// beside the old ones, of a large database a part at a time.
	mostRoom = 512 << 20
	// mostReclaimed is how large the tables are at most that are all written anew at once.
	mostReclaimed = 1 << 30
	// leastDisk is the smallest disk that a store can be on, whose files have to stand
	// beside each other for a while.
	leastDisk = 4 << 20
	// diskShare is how many memtables a disk has room for at least. A small disk has
	// small ones.
	diskShare     = 64
	leastMemTable = 64 << 10
	// A look at the disk is worth what was written since the last one, or its age: a
	// sixteenth of the room that has to be left, 4 MiB on a large disk.
	roomShare = 16
	roomAge   = time.Second
	// highCheck is how often it is looked whether level 0 is low enough again.
	highCheck = 5 * time.Millisecond
)

// A room is what is known of the room on the disk.
type room struct {
	none atomic.Bool

	// reclaiming is set while room is given back.
	reclaiming atomic.Bool

	// moved is set when the tables have changed since high was found out, which is whether
	// as many stand one above the other in level 0 as stop writes. finding guards high.
	moved   atomic.Bool
	finding sync.Mutex
	high    bool

	mu      sync.Mutex
	peak    int64  // the most tasks that there were while the disk was full
	written uint64 // since the last look
	worth   uint64 // how much may be written until the next one
	at      time.Time
}

// hasRoom reports whether there is room for new tasks. It looks at the disk now and
// then, when something is written.
func (s *Store) hasRoom(bytes int) bool {
	r := &s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written += uint64(bytes); r.written < r.worth && time.Since(r.at) < roomAge {
		return !r.none.Load()
	}
	r.written, r.at = 0, time.Now()
	u, err := s.config.fs.GetDiskUsage(s.dir)
	if err != nil {
		return !r.none.Load() // then a write says it
	}
	least := min(leastRoom, u.TotalBytes/8)
	r.worth = least / roomShare
	least = max(least, min(mostRoom, s.tablesSize()))
	if r.none.Load() {
		least += least / roomShare // so that it is not full and not full in turn
	}
	s.setFull(u.AvailBytes < least, u.AvailBytes)
	if r.none.Load() {
		r.peak = max(r.peak, s.tasks())
		s.reclaim(u.AvailBytes, r.peak)
	} else {
		r.peak = 0
	}
	return !r.none.Load()
}

// isHigh reports whether as many tables stand one above the other in level 0 as stop
// writes.
func (s *Store) isHigh() bool {
	r := &s.room
	r.finding.Lock()
	defer r.finding.Unlock()
	if r.moved.Swap(false) {
		r.high = s.db.Metrics().Levels[0].Sublevels >= stopWrites
	}
	return r.high
}

// awaitTables waits while level 0 is too high. It returns false when the store is over.
func (s *Store) awaitTables() bool {
	for s.isHigh() && !s.room.none.Load() {
		select {
		case <-time.After(highCheck):
		case <-s.over:
			return false
		}
	}
	return true
}

// tablesSize returns how many bytes the tables have.
func (s *Store) tablesSize() uint64 { return uint64(s.db.Metrics().Total().TablesSize) }

// tasks returns about how many tasks there are.
func (s *Store) tasks() (n int64) {
	for _, sh := range s.shards {
		n += sh.tasksNow.Load()
	}
	return n
}

// reclaim has the room given back of tasks that are gone, which the database does when
// much more is written, and on a full disk nothing more is. It is called by a shard's
// goroutine.
func (s *Store) reclaim(left uint64, peak int64) {
	if !s.room.reclaiming.CompareAndSwap(false, true) {
		return
	}
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		defer s.room.reclaiming.Store(false)
		err := s.guard(func() error {
			// The logs go with what is in memory. That is one more table.
			if !s.isHigh() {
				flushed, err := s.db.AsyncFlush()
				if err != nil {
					return err
				}
				select {
				case <-flushed:
				case <-s.over:
					return nil
				}
			}
			// Tables are written anew beside the old ones: there must be room for that.
			size := s.tablesSize()
			if size > mostReclaimed || size/uint64(max(peak, 1))*uint64(s.tasks()) > left-left/8 {
				return nil
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				select {
				case <-s.over:
					cancel()
				case <-ctx.Done():
				}
			}()
			return s.db.Compact(ctx, []byte{0}, bytes.Repeat([]byte{0xff}, spaceLen), false)
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			s.config.log.Warn("diskstore: no room was given back", "dir", s.dir, "error", firstLine(err.Error()))
		}
		s.room.mu.Lock()
		defer s.room.mu.Unlock()
		s.room.at = time.Time{} // the next one looks at the disk again
	}()
}

// guard calls f, and returns what Pebble panics with, when it cannot begin a new log, as
// an error, after which the store has failed.
func (s *Store) guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
			s.fail(err)
		}
	}()
	return f()
}

// checkDisk returns an error if a disk is too small, and sees that what is in memory is
// not too much for it.
func (s *Store) checkDisk() error {
	u, err := s.config.fs.GetDiskUsage(s.dir)
	if err != nil || u.TotalBytes == 0 { // then nothing is known
		return nil
	}
	if u.TotalBytes < leastDisk {
		return fmt.Errorf("diskstore: the disk of %s has %d bytes, and %d are needed: %w", s.dir, u.TotalBytes, leastDisk, store.ErrFull)
	}
	s.config.memTable = max(leastMemTable, int(min(uint64(s.config.memTable), u.TotalBytes/diskShare)))
	return nil
}

func (s *Store) setFull(full bool, left uint64) {
	if s.room.none.Swap(full) == full {
		return
	}
	if full {
		s.config.log.Error("diskstore: the disk is full; no new tasks are accepted", "dir", s.dir, "bytes left", left)
	} else {
		s.config.log.Info("diskstore: there is room on the disk again", "dir", s.dir)
	}
}

// needsRoom reports whether a command makes tasks.
func needsRoom(c *store.Command) bool { return c.Op == store.Schedule || c.Op == store.Import }
