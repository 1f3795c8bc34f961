package diskstore

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A store that has no room for its log has failed. So it accepts no new tasks when the
// disk is nearly full, but still what ends tasks, or moves them on.
const (
	// leastRoom is the room that has to be left: for what is in memory to be written
	// away, and for a compaction. On a small disk it is a sixteenth of it.
	leastRoom = 64 << 20
	// A look at the disk is worth what was written since the last one, or its age: a
	// sixteenth of the room that has to be left, 4 MiB on a large disk.
	roomShare = 16
	roomAge   = time.Second
)

// A room is what is known of the room on the disk.
type room struct {
	none atomic.Bool

	mu      sync.Mutex
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
	least := min(leastRoom, u.TotalBytes/16)
	r.worth = least / roomShare
	s.setFull(u.AvailBytes < least, u.AvailBytes)
	return !r.none.Load()
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
