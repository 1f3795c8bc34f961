package diskstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
)

// Checkpoint makes a copy of the store in another directory, which must not exist, while
// the Store works: it has all that was acknowledged before, and is a store like any
// other. Files that do not change are linked, if the directory is on the same disk, so
// that the copy takes little time and room; the copy still has them when the store is
// gone, but not when the disk is.
func (s *Store) Checkpoint(ctx context.Context, dir string) error {
	if s.gate.holds(dir) || filepath.Clean(dir) == filepath.Clean(s.dir) {
		return errors.New("diskstore: Checkpoint to a place in the directory of the store itself")
	}
	return s.read(ctx, 0, func(*view) error {
		if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
			return fmt.Errorf("diskstore: Checkpoint: %w", err)
		}
		m := marker{Format: formatVersion, Shards: len(s.shards), Ready: true, Written: make([]int64, len(s.shards))}
		if err := m.write(s.config.fs, dir); err != nil {
			_ = s.config.fs.RemoveAll(dir) // half a copy is none
			return fmt.Errorf("diskstore: Checkpoint: %w", err)
		}
		return nil
	})
}
