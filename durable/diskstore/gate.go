package diskstore

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
// A table that Pebble makes in the background may find the disk full. Pebble removes what
// it has made of it, and tries that again, at once and for ever, so that the gate has the
// next one wait. If all writes wait for that table the store fails after some seconds.
// When too many files are open the gate itself tries again, for some seconds: Pebble
// cannot go on without a log.
type gate struct {
	vfs.FS
	dir  string
	log  *slog.Logger
	logs logFiles
	// pause is gatePause, but in tests.
	pause time.Duration
	// over ends each pause, but while all writes are held up.
	over <-chan struct{}
	// rests are when the next table may be begun, if one has found no room: of what is in
	// memory, and of a compaction.
	rests [2]rest
	// fail is called with errors once the gate is armed, which it is when the store is
	// open. Until then who opens it has the errors.
	fail func(error)
	full func(error)
	// tables is set when Pebble has begun to write what is in the log to tables, before
	// the gate is armed. From then on it must not be told of an error: it
	// would try again at once and for ever, panic in a goroutine of its own, or free what
	// that uses. So what fails is parked, and stuck gets the error. A compaction that finds
	// no room is none of that: nothing depends on it, and Pebble removes what it has made.
	tables atomic.Bool
	stuck  chan error
	armed  atomic.Bool
	shut   atomic.Bool
	// short is set while no table can be made because too many files are open, which was
	// tried for long.
	short atomic.Bool
	// stalled is set while Pebble holds all writes up, since tables have to be written
	// first, and starved how often no table found room meanwhile.
	stalled atomic.Bool
	starved atomic.Int64
	// busy is how many operations are under way that change something.
	busy   atomic.Int64
	making unfinished
}

const (
	// gatePause is how long what found the disk full, or too many files open, waits
	// until it is tried again.
	gatePause = 200 * time.Millisecond
	// overPause is how long a table that found the disk full waits when the store is over.
	overPause = 10 * time.Millisecond
	// crowdedTries is how often a file is tried to be opened while too many are open,
	// which takes ten seconds.
	crowdedTries = 50
	// starvedTries is how often what is in memory finds no room while all writes are held
	// up, until the store fails: ten seconds.
	starvedTries = 50
	// tableFloor is the room that tables leave. On a small disk it is a 64th of it. Those
	// of a compaction leave half of that.
	tableFloor = 8 << 20
	// compactionCategory is what Pebble makes the tables of a compaction with.
	compactionCategory = vfs.DiskWriteCategory("pebble-compaction")
)

// park does not return.
func park() { select {} }

func (g *gate) enter() {
	if !g.tryEnter() {
		park()
	}
}

// tryEnter is enter for who can go without the change: it returns false if nothing may be
// changed any more, and otherwise has raised busy.
func (g *gate) tryEnter() bool {
	g.busy.Add(1)
	if g.shut.Load() {
		g.busy.Add(-1)
		return false
	}
	return true
}

// leave looks at the error of an operation that writes, maybe for a compaction.
func (g *gate) leave(name string, compacts bool, err error) {
	table := g.isTable(name)
	switch {
	case compacts && !g.armed.Load() && isFull(err) && table:
		g.busy.Add(-1)
		g.full(err)
		g.rest(compacts).begin(g.pause)
	case err != nil && !g.armed.Load() && g.tables.Load() && g.holds(name):
		g.busy.Add(-1)
		g.stick(err)
	case err == nil || !g.armed.Load() || !g.holds(name):
		g.busy.Add(-1)
	case isCrowded(err) && table:
		g.short.Store(true)
		g.busy.Add(-1) // Pebble tries again what was tried for long
	case isFull(err) && table && (compacts || !g.starves()):
		g.busy.Add(-1)
		g.full(err)
		g.rest(compacts).begin(g.pause)
	default:
		g.fail(err)
		g.busy.Add(-1)
		park()
	}
}

// A rest is the time until a table may be begun.
type rest struct {
	mu  sync.Mutex
	end time.Time
}

func (r *rest) begin(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end = time.Now().Add(d)
}

func (r *rest) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Until(r.end)
}

func (g *gate) rest(compacts bool) *rest {
	if compacts {
		return &g.rests[1]
	}
	return &g.rests[0]
}

// await waits until a table may be begun. When the store is over the pauses are short, so
// that Close need not wait. But when all writes are held up Close waits for them anyway,
// and each try counts: see starves.
func (g *gate) await(name string, compacts bool) {
	if !g.isTable(name) {
		return
	}
	left := g.rest(compacts).left()
	if left <= 0 {
		return
	}
	over := g.over
	if !compacts && g.stalled.Load() {
		over = nil
	}
	select {
	case <-time.After(left):
	case <-over:
		time.Sleep(min(left, overPause))
	}
}

// floor returns the room that tables leave for the files without which the store fails:
// the log, and Pebble's manifest. A compaction leaves less: what it has written is gone if
// it fails, and if there is no room for it no more comes.
func (g *gate) floor(size uint64, compacts bool) uint64 {
	floor := min(tableFloor, size/64)
	if compacts {
		floor /= 2
	}
	return floor
}

// hasFloor reports whether the disk has room for a write to a table.
func (g *gate) hasFloor(bytes int, compacts bool) bool {
	u, err := g.FS.GetDiskUsage(g.dir)
	return err != nil || u.AvailBytes >= g.floor(u.TotalBytes, compacts)+uint64(bytes)
}

// starves is called when what is in memory has found no room. It reports whether that has
// held all writes up for long: whoever cancels tasks to make room waits too then.
func (g *gate) starves() bool {
	return g.stalled.Load() && g.starved.Add(1) >= starvedTries
}

// stall is called when Pebble begins to hold writes up, or lets them go on.
func (g *gate) stall(begins bool) {
	g.starved.Store(0)
	g.stalled.Store(begins)
}

// stick has Open return an error. It does not return.
func (g *gate) stick(err error) {
	select {
	case g.stuck <- err:
	default:
	}
	park()
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

// isTable reports whether a file is a table.
func (g *gate) isTable(name string) bool {
	return g.holds(name) && strings.HasSuffix(name, tableSuffix)
}

// isLog reports whether a file is one of the log.
func (g *gate) isLog(name string) bool { return g.holds(name) && strings.HasSuffix(name, logSuffix) }

// isFull reports whether an error says that the disk has no room.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// isCrowded reports whether an error says that too many files are open.
func isCrowded(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// crowded waits, and reports whether a file is to be tried again that could not be opened
// because too many are: the store need not fail for what others in the process do. As
// long as Pebble may be told of it whoever opens the store has the error.
func (g *gate) crowded(name string, err error, try int) bool {
	if !isCrowded(err) || !g.armed.Load() && !g.tables.Load() || !g.holds(name) || try == crowdedTries {
		return false
	}
	if try == 1 {
		g.log.Warn("diskstore: too many files are open; trying again", "file", name, "for", crowdedTries*g.pause)
	}
	time.Sleep(g.pause)
	return true
}

// Open opens a file for reading.
func (g *gate) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	for try := 1; ; try++ {
		f, err := g.FS.Open(name, opts...)
		if g.shut.Load() || !g.crowded(name, err, try) {
			return f, err
		}
	}
}

// write opens a file for writing by calling f.
func (g *gate) write(name string, compacts bool, f func() (vfs.File, error)) (vfs.File, error) {
	if g.isTable(name) {
		g.tables.Store(true)
	}
	for try := 1; ; try++ {
		g.enter()
		file, err := f()
		if g.crowded(name, err, try) {
			g.busy.Add(-1)
			continue
		}
		if err == nil && g.isLog(name) {
			g.logs.add(name)
		}
		made := &gatedFile{file, g, name, compacts}
		if err == nil && g.isTable(name) {
			g.short.Store(false)
			g.making.add(made)
		}
		g.leave(name, compacts, err)
		if err != nil {
			return nil, err
		}
		return made, nil
	}
}

func (g *gate) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	g.await(name, c == compactionCategory)
	return g.write(name, c == compactionCategory, func() (vfs.File, error) {
		if err := g.settle(name); err != nil {
			return nil, err
		}
		return g.FS.Create(name, c)
	})
}

// settle is called before a file is made. One that says by its name which other file is
// the current one must not be on the disk before that: Pebble syncs the directory once,
// when it has made both.
func (g *gate) settle(name string) error {
	if !g.holds(name) || !strings.HasPrefix(filepath.Base(name), "marker.") {
		return nil
	}
	return syncDir(g.FS, g.dir)
}

func (g *gate) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.write(name, false, func() (vfs.File, error) { return g.FS.OpenReadWrite(name, c, opts...) })
}

// ReuseForWrite makes another file if the old one is gone: somebody has removed it, or it
// got its new name by a try that could not open it then.
func (g *gate) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	g.logs.forget(old)
	return g.write(name, false, func() (vfs.File, error) {
		f, err := g.FS.ReuseForWrite(old, name, c)
		if missing(err) {
			f, err = g.FS.Create(name, c)
		}
		return f, err
	})
}

func (g *gate) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &gatedFile{f, g, name, false}, nil
}

// List is what Open calls at its end.
func (g *gate) List(name string) ([]string, error) {
	names, err := g.FS.List(name)
	if err != nil && !g.armed.Load() && g.tables.Load() && g.holds(name) {
		g.stick(err)
	}
	return names, err
}

func (g *gate) change(name string, f func() error) error { return g.changeFor(name, false, f) }

func (g *gate) changeFor(name string, compacts bool, f func() error) error {
	g.enter()
	err := f()
	g.leave(name, compacts, err)
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
	if g.isLog(name) && !g.logs.remove(name) {
		return nil
	}
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
	g        *gate
	name     string
	compacts bool // it is a table that a compaction makes
}

func (f *gatedFile) change(do func() error) error { return f.g.changeFor(f.name, f.compacts, do) }

// Close closes a table once: drop may have done so.
func (f *gatedFile) Close() error {
	if f.g.isTable(f.name) && !f.g.making.end(f) {
		return nil
	}
	return f.File.Close()
}

func (f *gatedFile) Write(p []byte) (n int, err error) {
	err = f.change(func() (err error) {
		if f.g.isTable(f.name) && !f.g.hasFloor(len(p), f.compacts) {
			return &fs.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
		}
		n, err = f.File.Write(p)
		return err
	})
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
