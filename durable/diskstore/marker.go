package diskstore

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tickless/tickless/durable/store"
)

const (
	markerName = "TICKLESS"
	// formatVersion is the version of what is in the directory. It changes when an
	// older version of this package must not open it any more. One of version 1, which
	// has no heads and no ledgers, is made one of version 2 when it is opened.
	formatVersion, oldestVersion = 2, 1
)

// A marker is the file that says that a directory is a store.
type marker struct {
	Format int `json:"format"`
	Shards int `json:"shards"`
	// Ready is set when the store was made whole. One that is not is made again.
	Ready bool `json:"ready"`
	// Written has for each shard how many batches are on the disk at least. A database
	// that has fewer has lost some.
	Written []int64 `json:"written"`
	// Log is the number of the newest file of the log, or of an older one; zero if it
	// is not known, as in a copy.
	Log int64 `json:"log,omitempty"`
}

// readMarker returns nil if there is no marker.
func readMarker(fs vfs.FS, dir string) (*marker, error) {
	f, err := fs.Open(fs.PathJoin(dir, markerName))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("diskstore: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("diskstore: %w", err)
	}
	text, sum, _ := strings.Cut(string(b), "\n")
	if sum != checksum(text) {
		return nil, damaged("the file %s cannot be read", markerName)
	}
	m := new(marker)
	if err := json.Unmarshal([]byte(text), m); err != nil {
		return nil, damaged("the file %s: %v", markerName, err)
	}
	if m.Format < oldestVersion || m.Format > formatVersion {
		return nil, fmt.Errorf("diskstore: %w: the directory has version %d, and this is version %d", store.ErrSchema, m.Format, formatVersion)
	}
	if m.Ready && len(m.Written) != m.Shards {
		return nil, damaged("the file %s has %d shards of %d", markerName, len(m.Written), m.Shards)
	}
	return m, nil
}

func checksum(text string) string { return fmt.Sprintf("%08x\n", crc32.ChecksumIEEE([]byte(text))) }

// write replaces the marker, all at once.
func (m *marker) write(fs vfs.FS, dir string) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	name := fs.PathJoin(dir, markerName)
	f, err := fs.Create(name+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(string(b) + "\n" + checksum(string(b))))
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = fs.Rename(name+".tmp", name)
	}
	if err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// syncDir has the names of files that a directory has be on the disk.
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
