package diskstore

import "github.com/cockroachdb/pebble/v2/vfs"

// WithFS has a Store work on another file system.
func WithFS(fs vfs.FS) Option { return option(func(c *config) { c.fs = fs }) }

// WithWindow has a shard keep that many tasks in memory, and read that many keys at a
// time.
func WithWindow(tasks, page int) Option {
	return option(func(c *config) { c.window, c.batch = tasks, page })
}

// WithMemTable has the database make tables of that size.
func WithMemTable(bytes int) Option { return option(func(c *config) { c.memTable = bytes }) }
