package diskstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
func (s *Store) Checkpoint(ctx context.Context, dir string) error {
	dir, err := absolute(s.config.fs, dir)
	if err != nil {
		return err
	}
	if s.gate.holds(dir) || filepath.Clean(dir) == filepath.Clean(s.dir) {
		return errors.New("diskstore: Checkpoint to a place in the directory of the store itself")
	}
	if _, err := s.config.fs.Stat(dir); !missing(err) {
		if err == nil {
			err = fs.ErrExist
		}
		return fmt.Errorf("diskstore: Checkpoint to %s: %w", dir, err)
	}
	// Either the copy is whole first, or the caller has gone. Whoever is second removes
	// what nobody is told of.
	var first atomic.Bool
	err = s.read(ctx, 0, func(*view) error {
		err := s.copyTo(dir)
		if err == nil && !first.CompareAndSwap(false, true) {
			_ = s.config.fs.RemoveAll(dir)
		}
		return err
	})
	if err != nil && !first.CompareAndSwap(false, true) {
		_ = s.config.fs.RemoveAll(dir)
	}
	return err
}

// copyTo makes a copy, or nothing.
func (s *Store) copyTo(dir string) error {
	if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("diskstore: Checkpoint: %w", err)
	}
	m := marker{Format: formatVersion, Shards: len(s.shards), Ready: true, Written: make([]int64, len(s.shards))}
	if err := m.write(s.config.fs, dir); err != nil {
		_ = s.config.fs.RemoveAll(dir) // half a copy is none
		return fmt.Errorf("diskstore: Checkpoint: %w", err)
	}
	return nil
}
