package diskstore

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// # The files of the log
//
// What was written last is in the log alone until a table is made of it, at the latest
// when the store is closed. Each table is followed by another file of the log. Pebble
// gives an old file the name of the next one, or removes it.
//
// Somebody may remove files of the log while the store is open: they are named *.log.
// What they have is still in memory then. So the Store looks for them, and if one is
// gone, writes all that is in memory to tables. If the process ends before that, the
// store is damaged: Open finds that out by the newest file, whose number the marker has.

const logSuffix = ".log"

// logAge is how often it is looked whether the log is there, while it is written.
const logAge = time.Second

// logNumber returns the number of a file of the log, or zero if it is none.
func logNumber(name string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(filepath.Base(name), logSuffix), 10, 64)
	return n
}

// logFiles are those that Pebble has made and has neither removed nor given another name.
type logFiles struct {
	mu    sync.Mutex
	names []string
	// Until the store is open the old files stay, so that there is always one: Pebble
	// removes them before it makes a new one, and Open may fail between the two.
	free bool
	old  []string
}

func (l *logFiles) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = append(l.names, name)
}

// forget is called before a file is removed, or gets another name.
func (l *logFiles) forget(names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = slices.DeleteFunc(l.names, func(name string) bool { return slices.Contains(names, name) })
}

// remove reports whether a file may be removed now.
func (l *logFiles) remove(name string) bool {
	l.forget(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.free {
		l.old = append(l.old, name)
	}
	return l.free
}

// clear removes the old files, when the store is open. It does no harm if they stay.
func (l *logFiles) clear(fsys vfs.FS) {
	l.mu.Lock()
	old := l.old
	l.free, l.old = true, nil
	l.mu.Unlock()
	for _, name := range old {
		_ = fsys.Remove(name)
	}
}

// gone returns those that somebody else has removed.
func (l *logFiles) gone(fsys vfs.FS) (names []string) {
	l.mu.Lock()
	all := slices.Clone(l.names)
	l.mu.Unlock()
	for _, name := range all {
		if _, err := fsys.Stat(name); missing(err) {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(l.names, name) })
}

// findLog looks whether the log is there, and has what it had written to the tables if
// somebody has removed a file of it. If it has looked lately tend does so later.
func (s *Store) findLog() error {
	s.finding.Lock()
	defer s.finding.Unlock()
	now := time.Now()
	if now.Sub(s.looked) < s.config.logAge {
		if s.later == nil {
			s.later = time.AfterFunc(s.config.logAge, func() { soon(s.look) })
		}
		return nil
	}
	s.looked = now
	s.lookNoMoreLocked()
	gone := s.gate.logs.gone(s.config.fs)
	if len(gone) == 0 {
		return nil
	}
	s.config.log.Error("diskstore: somebody has removed files of the log; what they had is written to tables", "files", gone)
	var flushed <-chan struct{}
	err := s.guard(func() (err error) {
		flushed, err = s.db.AsyncFlush()
		return err
	})
	if err != nil {
		return err
	}
	select {
	case <-flushed:
		s.gate.logs.forget(gone...)
		return nil
	case <-s.failed:
		return s.cause
	}
}

// lookNoMoreLocked stops what would have tend look for the log.
func (s *Store) lookNoMoreLocked() {
	if s.later != nil {
		s.later.Stop()
		s.later = nil
	}
}

// hasLog returns an error if a store lacks its log: it always has one, and the newest is
// not older than the one that the marker has.
func hasLog(fsys vfs.FS, dir string, m *marker) error {
	names, err := fsys.List(dir)
	if err != nil {
		return fmt.Errorf("diskstore: %w", err)
	}
	newest := int64(0)
	for _, name := range names {
		if strings.HasSuffix(name, logSuffix) {
			newest = max(newest, logNumber(name))
		}
	}
	switch {
	case newest == 0:
		return damaged("%s has no log: somebody has removed the files named *.log", dir)
	case newest < m.Log:
		return damaged("%s lacks %06d.log, the newest file of the log: somebody has removed it", dir, m.Log)
	}
	return nil
}
