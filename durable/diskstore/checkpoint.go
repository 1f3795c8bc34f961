package diskstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// Checkpoint makes a copy of the store in another directory, which must not exist, while
// the Store works: it has all that was acknowledged before, and is a store like any
// other. Files that do not change are linked, if the directory is on the same disk, so
// that the copy takes little time and room; the copy still has them when the store is
// gone, but not when the disk is. If there is an error, as when ctx ends, there is no
// copy: what there is of it is removed, if need be after Checkpoint has returned.
//
// Until the copy is whole its directory has another name, that of dir with .tmp- and some
// digits behind it; a crash may leave that. Of two calls for one directory at a time the
// second to finish returns an error that wraps [fs.ErrExist], and the copy of the first
// stays.
func (s *Store) Checkpoint(ctx context.Context, dir string) error {
	dir, err := absolute(s.config.fs, dir)
	if err != nil {
		return err
	}
	dir = s.config.fs.PathJoin(dir) // without a slash at its end
	if s.gate.holds(dir) || filepath.Clean(dir) == filepath.Clean(s.dir) {
		return errors.New("diskstore: Checkpoint to a place in the directory of the store itself")
	}
	if err := s.isFree(dir); err != nil {
		return err
	}
	// Either the copy is in its place first, or the caller has gone: then it is taken away
	// again, since nobody is told of it.
	var first atomic.Bool
	err = s.read(ctx, 0, func(*view) error { return s.copyTo(dir, &first) })
	if err != nil && !first.CompareAndSwap(false, true) {
		return nil // it is there, although ctx has ended meanwhile
	}
	return err
}

// isFree returns an error if there is a file or a directory of that name.
func (s *Store) isFree(dir string) error {
	_, err := s.config.fs.Stat(dir)
	if missing(err) {
		return nil
	}
	if err == nil {
		err = fs.ErrExist
	}
	return fmt.Errorf("diskstore: Checkpoint to %s: %w", dir, err)
}

// copyTo makes a copy, or nothing. It works in a directory that no other call has, so
// that it removes nothing but its own.
func (s *Store) copyTo(dir string, first *atomic.Bool) (err error) {
	part := fmt.Sprintf("%s.tmp-%016x", dir, rand.Uint64())
	defer func() {
		if err != nil {
			_ = s.config.fs.RemoveAll(part) // half a copy is none
		}
	}()
	if err := s.db.Checkpoint(part, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("diskstore: Checkpoint: %w", err)
	}
	m := marker{Format: formatVersion, Shards: len(s.shards), Ready: true, Written: make([]int64, len(s.shards))}
	if err := m.write(s.config.fs, part); err != nil {
		return fmt.Errorf("diskstore: Checkpoint: %w", err)
	}
	if first.Load() {
		return errGone
	}
	s.placing.Lock() // until it is decided whether the copy stays
	defer s.placing.Unlock()
	if err := s.place(part, dir); err != nil {
		return err
	}
	if err = syncDir(s.config.fs, s.config.fs.PathDir(dir)); err != nil {
		err = fmt.Errorf("diskstore: Checkpoint: %w", err)
	} else if !first.CompareAndSwap(false, true) {
		err = errGone
	}
	if err != nil && s.config.fs.Rename(dir, part) != nil { // at once, before it is removed file by file
		_ = s.config.fs.RemoveAll(dir)
	}
	return err
}

// errGone is for a copy whose caller has gone.
var errGone = errors.New("diskstore: Checkpoint: nobody waits for the copy")

// place gives a copy its name, if that is free still: some file systems would replace
// what has it. placing is locked.
func (s *Store) place(part, dir string) error {
	if err := s.isFree(dir); err != nil {
		return err
	}
	if err := s.config.fs.Rename(part, dir); err != nil {
		return fmt.Errorf("diskstore: Checkpoint: %w", err)
	}
	return nil
}
