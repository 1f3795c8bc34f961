package diskstore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A gate is the file system that Pebble works on. It notes the first write or sync that
// fails, and then lets nothing more be changed: after a failed sync it is not known what
// is on the disk, and whoever went on could make acknowledged what is not.
//
// The goroutine that has failed, and each that is to change something later, is parked
// for ever. It must not return to Pebble: when a log cannot be ended or begun Pebble
// panics where its deferred functions give back a lock that it does not have, which ends
// the process, whoever recovers. So a store that has failed leaves goroutines behind.
//
// A table that Pebble makes in the background may find the disk full. Pebble tries that
// again, at once and for ever, so that the gate has it wait. So it does when too many files are open.
type gate struct {
	vfs.FS
	dir string
	// fail is called with errors once the gate is armed, which it is when the store is
	// open. Until then who opens it has the errors.
	fail func(error)
	full func(error)
	// stuck gets an error if a table finds the disk full before the gate is armed.
	stuck chan error
	armed atomic.Bool
	shut  atomic.Bool
	// busy is how many operations are under way that change something.
	busy atomic.Int64
}

// fullPause is how long what found the disk full, or too many files open, waits until it
// is tried again.
const fullPause = 200 * time.Millisecond

// crowdedTries is how often a file is tried to be read while too many are open.
const crowdedTries = 50

// park does not return.
func park() { select {} }

func (g *gate) enter() {
	g.busy.Add(1)
	if g.shut.Load() {
		g.busy.Add(-1)
		park()
	}
}

// leave looks at the error of an operation that writes.
func (g *gate) leave(name string, err error) {
	ours := strings.HasSuffix(name, ".sst") && g.holds(name)
	table := isFull(err) && ours
	switch {
	case isCrowded(err) && ours && g.armed.Load():
		g.busy.Add(-1)
		time.Sleep(fullPause)
	case table && !g.armed.Load():
		g.busy.Add(-1)
		select {
		case g.stuck <- err:
		default:
		}
		park() // Pebble would try for as long as the disk is full, and Open wait
	case err == nil || !g.armed.Load() || !g.holds(name):
		g.busy.Add(-1)
	case table:
		g.busy.Add(-1)
		g.full(err)
		time.Sleep(fullPause)
	default:
		g.fail(err)
		g.busy.Add(-1)
		park()
	}
}

// quiet waits until nothing is under way that changes something, and reports whether
// that came within some time. The gate is shut.
func (g *gate) quiet(within time.Duration) bool {
	for end := time.Now().Add(within); g.busy.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// holds reports whether a file is the store's: a copy may be written elsewhere.
func (g *gate) holds(name string) bool {
	return name == g.dir || filepath.Dir(name) == filepath.Clean(g.dir)
}

// isFull reports whether an error says that the disk has no room.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// isCrowded reports whether an error says that too many files are open.
func isCrowded(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Open opens a file for reading. While too many are open it tries again for some time,
// so that the store does not fail for what others in the process do, and Pebble does not
// try at once and for ever.
func (g *gate) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	for try := 1; ; try++ {
		f, err := g.FS.Open(name, opts...)
		if !isCrowded(err) || !g.armed.Load() || try == crowdedTries || g.shut.Load() {
			return f, err
		}
		time.Sleep(fullPause)
	}
}

func (g *gate) file(f vfs.File, name string, err error) (vfs.File, error) {
	g.leave(name, err)
	if err != nil {
		return nil, err
	}
	return &gatedFile{f, g, name}, nil
}

func (g *gate) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	g.enter()
	f, err := g.FS.Create(name, c)
	return g.file(f, name, err)
}

func (g *gate) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	g.enter()
	f, err := g.FS.OpenReadWrite(name, c, opts...)
	return g.file(f, name, err)
}

func (g *gate) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	g.enter()
	f, err := g.FS.ReuseForWrite(old, name, c)
	return g.file(f, name, err)
}

func (g *gate) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &gatedFile{f, g, name}, nil
}

func (g *gate) change(name string, f func() error) error {
	g.enter()
	err := f()
	g.leave(name, err)
	return err
}

func (g *gate) Link(old, name string) error {
	return g.change(name, func() error { return g.FS.Link(old, name) })
}

func (g *gate) Rename(old, name string) error {
	return g.change(name, func() error { return g.FS.Rename(old, name) })
}

func (g *gate) MkdirAll(name string, perm os.FileMode) error {
	return g.change(name, func() error { return g.FS.MkdirAll(name, perm) })
}

// A file that stays although it should go does no harm.

func (g *gate) Remove(name string) error {
	g.enter()
	defer g.busy.Add(-1)
	return g.FS.Remove(name)
}

func (g *gate) RemoveAll(name string) error {
	g.enter()
	defer g.busy.Add(-1)
	return g.FS.RemoveAll(name)
}

func (g *gate) Unwrap() vfs.FS { return g.FS }

type gatedFile struct {
	vfs.File
	g    *gate
	name string
}

func (f *gatedFile) change(do func() error) error { return f.g.change(f.name, do) }

func (f *gatedFile) Write(p []byte) (n int, err error) {
	err = f.change(func() (err error) { n, err = f.File.Write(p); return err })
	return n, err
}

func (f *gatedFile) WriteAt(p []byte, at int64) (n int, err error) {
	err = f.change(func() (err error) { n, err = f.File.WriteAt(p, at); return err })
	return n, err
}

func (f *gatedFile) Sync() error     { return f.change(f.File.Sync) }
func (f *gatedFile) SyncData() error { return f.change(f.File.SyncData) }

func (f *gatedFile) SyncTo(n int64) (full bool, err error) {
	err = f.change(func() (err error) { full, err = f.File.SyncTo(n); return err })
	return full, err
}

// missing reports whether an error says that there is no such file.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Lock locks nothing: the Store has the lock, and keeps it as long as it has to, whether
// Pebble can be closed or not.
func (g *gate) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }
