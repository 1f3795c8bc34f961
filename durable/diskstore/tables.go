package diskstore

import (
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// # Tables that nobody needs
//
// What ends while a table is made leaves a part of it, and maybe whole tables of which
// the database has not noted yet that they are its own. Pebble removes them at the end of
// its Open. On a full disk it may need their room to come that far. So the Store removes
// them first. And a store that cannot go on, whose goroutines are parked, closes what it
// was making: the disk keeps the room of a file that is open.

const tableSuffix, manifestPrefix = ".sst", "MANIFEST-"

// unfinished are the tables that are being made.
type unfinished struct {
	mu    sync.Mutex
	files map[*gatedFile]bool
}

func (u *unfinished) add(f *gatedFile) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.files == nil {
		u.files = make(map[*gatedFile]bool)
	}
	u.files[f] = true
}

// end reports whether a table was being made, which it is not any more.
func (u *unfinished) end(f *gatedFile) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	there := u.files[f]
	delete(u.files, f)
	return there
}

// drop removes the tables that are being made. The gate is shut, and nothing is under way
// that changes something. What Pebble has not closed it has not noted either.
func (g *gate) drop() {
	g.making.mu.Lock()
	defer g.making.mu.Unlock()
	for f := range g.making.files {
		_ = f.File.Close()
		_ = g.FS.Remove(f.name)
	}
	clear(g.making.files)
}

// logless is a file system without the log of a store.
type logless struct{ vfs.FS }

func (l logless) List(dir string) (names []string, err error) {
	all, err := l.FS.List(dir)
	for _, name := range all {
		if !strings.HasSuffix(name, logSuffix) {
			names = append(names, name)
		}
	}
	return names, err
}

// tidy removes the tables that are not the database's. It does without if these cannot be
// found out: whoever opens the database then says why.
func (s *Store) tidy() {
	all, err := s.gate.List(s.dir)
	if err != nil {
		return
	}
	needed, err := s.neededTables()
	if err != nil {
		return
	}
	var manifests, gone []string
	for _, name := range all {
		number, isTable := strings.CutSuffix(name, tableSuffix)
		n, err := strconv.ParseUint(number, 10, 64)
		switch {
		case strings.HasPrefix(name, manifestPrefix):
			manifests = append(manifests, name)
		case isTable && err == nil && !needed[n]:
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 || s.syncManifests(manifests) != nil {
		return
	}
	for _, name := range gone {
		_ = s.config.fs.Remove(s.config.fs.PathJoin(s.dir, name)) // no harm is done if it stays
	}
}

// syncManifests has what was read be on the disk: by what a process had not synced when it
// was killed a table may not be needed any more that is after a power cut.
func (s *Store) syncManifests(names []string) error {
	for _, name := range names {
		f, err := s.config.fs.Open(s.config.fs.PathJoin(s.dir, name))
		if err != nil {
			return err
		}
		err = f.Sync()
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	return syncDir(s.config.fs, s.dir)
}

// neededTables returns the numbers of the database's tables. It reads the manifest, and
// writes nothing.
func (s *Store) neededTables() (map[uint64]bool, error) {
	type result struct {
		needed map[uint64]bool
		err    error
	}
	done := make(chan result, 2)
	go func() {
		var r result
		defer func() {
			if v := recover(); v != nil {
				r.err = panicked(v)
			}
			done <- r
		}()
		o := s.pebbleOptions()
		defer o.Cache.Unref()
		o.FS, o.ReadOnly, o.ErrorIfNotExists = logless{s.gate}, true, true
		o.Logger = &logger{log: s.config.log, fail: func(err error) { done <- result{err: err} }}
		o.EventListener = &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}
		db, err := pebble.Open(s.dir, o)
		if err != nil {
			r.err = err
			return
		}
		levels, err := db.SSTables()
		r.needed = make(map[uint64]bool)
		for _, tables := range levels {
			for _, t := range tables {
				r.needed[uint64(t.BackingSSTNum)] = true
			}
		}
		if r.err = err; err == nil {
			r.err = db.Close()
		}
	}()
	r := <-done
	return r.needed, r.err
}
