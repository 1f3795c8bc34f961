package diskstore

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A group is what a shard has carried out together, and the calls that wait until it is
// on the disk.
type group struct {
	shard   *shard
	calls   []*call
	written bool  // something was written
	seq     int64 // of the batch
}

// maxGroups is how many groups of a shard wait for a sync besides the one whose sync is
// under way: what comes then waits, and makes a larger group.
const maxGroups = 1

// A syncer has what the shards write synced, and then answers their calls. One sync is
// for all shards: those that are about to write when another one asks for a sync, so that
// they would wait for the next, are waited for.
type syncer struct {
	s      *Store
	shards []*shard // that are not over
	groups []group  // of the sync under way
}

// run is the syncer's goroutine. It ends with the shards.
func (y *syncer) run() {
	defer y.s.running.Done()
	for len(y.shards) > 0 {
		select {
		case <-y.s.grouped:
		case <-y.s.failed:
			return
		}
		for y.gather() {
			if err := y.sync(); err != nil {
				y.s.fail(err)
				return
			}
			y.answer()
		}
	}
}

// gather takes the groups that there are and, if there are any, those that are coming.
// It returns false if there is none, or the store has failed.
func (y *syncer) gather() bool {
	clear(y.groups)
	y.groups = y.groups[:0]
	var coming, left []*shard
	for _, sh := range y.shards {
		select {
		case g, ok := <-sh.groups:
			if !ok {
				continue
			}
			y.groups = append(y.groups, g)
		default:
			if sh.busy.Load() {
				coming = append(coming, sh)
			}
		}
		left = append(left, sh)
	}
	y.shards = left
	if len(y.groups) == 0 {
		return false
	}
	for _, sh := range coming {
		select {
		case g := <-sh.groups:
			y.groups = append(y.groups, g)
		case <-y.s.failed:
			return false
		}
	}
	return true
}

// sync returns when the groups are on the disk, if they have to be.
func (y *syncer) sync() (err error) {
	written := false
	for i := range y.groups {
		written = written || y.groups[i].written
	}
	if !written {
		return nil
	}
	if y.s.config.every > 0 {
		soon(y.s.unsynced)
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w\n%s", panicked(v), debug.Stack())
		}
	}()
	// What is in the log before this is synced with it.
	if err := y.s.db.LogData(nil, pebble.Sync); err != nil {
		return err
	}
	if err := y.s.findLog(); err != nil {
		return err
	}
	for i := range y.groups {
		y.groups[i].shard.synced.Store(y.groups[i].seq)
	}
	return nil
}

// logAge is how often it is looked whether the log is there, while it is written.
const logAge = time.Second

// findLog looks whether the file of the log still has its name. If somebody has removed
// it what it has would be gone with the process: so it is written to the tables, and
// another log begun.
func (s *Store) findLog() error {
	if now := time.Now(); now.Sub(s.looked) >= s.config.logAge {
		s.looked = now
	} else {
		return nil
	}
	name := s.log.Load()
	if name == nil {
		return nil
	}
	if _, err := s.config.fs.Stat(*name); !missing(err) || s.log.Load() != name {
		return nil // it is there, or another one was begun
	}
	s.config.log.Error("diskstore: somebody has removed the log; what it had is written to tables", "file", *name)
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-flushed:
		return nil
	case <-s.failed:
		return s.cause
	}
}

func (y *syncer) answer() {
	for i := range y.groups {
		for _, c := range y.groups[i].calls {
			close(c.done)
		}
	}
}
