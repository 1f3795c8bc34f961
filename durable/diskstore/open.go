package diskstore

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tickless/tickless/durable/store"
)

// Open opens the store in a directory, which it makes if there is none. It blocks until
// the log of a crash has been read: a second or so, and 3 s for ten million tasks. The
// store stays in that directory when the process changes its own, or a link to it changes.
//
// The error wraps [ErrLocked] if the directory is in use, [ErrForeign] if it has other
// files, [store.ErrSchema] if it was made by another version or with another number of
// shards, [ErrDamaged] if it is damaged, and [store.ErrFull] if there is no room on the
// disk for what a crash, or a Close on a full disk, has left in the log, or if it is
// smaller than 4 MB. Nothing is left running then, unless the disk failed, or was full,
// while the log was read, or a new store was made: goroutines of the database are left
// behind. Open panics if an option is nil.
func Open(dir string, opts ...Option) (*Store, error) {
	c := newConfig(opts)
	if dir == "" {
		return nil, errors.New("diskstore: Open with no directory")
	}
	dir, err := makeDir(c.fs, dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		dir:      dir,
		config:   c,
		over:     make(chan struct{}),
		failed:   make(chan struct{}),
		grouped:  make(chan struct{}, 1),
		unsynced: make(chan time.Time, 1),
		flushed:  make(chan struct{}, 1),
		look:     make(chan struct{}, 1),
		waiters:  make(map[*waiter]struct{}),
	}
	if err := s.checkDisk(); err != nil {
		return nil, err
	}
	s.gate = &gate{
		FS: c.fs, dir: dir, log: c.log, pause: c.pause, over: s.over,
		fail: s.fail, stuck: make(chan error, 1), full: func(error) { s.setFull(true, 0) },
	}
	if err := notForeign(c.fs, dir); err != nil {
		return nil, err
	}
	if s.lock, err = lockDir(c.fs, dir); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		s.gate.shut.Store(true)
		if s.gate.quiet(s.config.patience) {
			s.gate.drop()
			_ = s.lock.Close()
		}
		return nil, err
	}
	return s, nil
}

func (s *Store) open() error {
	m, err := readMarker(s.gate, s.dir)
	if err != nil {
		return err
	}
	if m == nil {
		if m, err = s.create(); err != nil {
			return err
		}
	}
	if n := s.config.shards; n != 0 && n != m.Shards {
		return fmt.Errorf("diskstore: %w: the store has %d shards, not %d", store.ErrSchema, m.Shards, n)
	}
	if err := checkFormat(s.gate, s.dir); err != nil {
		return s.openError(err)
	}
	if m.Ready {
		if err := hasLog(s.gate, s.dir, m); err != nil {
			return err
		}
		s.tidy()
		if err := s.proveLog(m); err != nil {
			return err
		}
	}
	if err := s.openDB(m.Ready); err != nil {
		return err
	}
	if err := s.load(m); err != nil {
		s.abandon()
		return err
	}
	s.lookBack()
	s.room.moved.Store(true)
	s.gate.armed.Store(true)
	s.gate.logs.clear(s.config.fs)
	soon(s.flushed) // the log is another one
	for _, sh := range s.shards {
		s.running.Add(1)
		go sh.serve()
	}
	s.running.Add(3)
	y := newSyncer(s)
	go y.run()
	go y.answer()
	go s.tend()
	if s.config.every > 0 {
		s.running.Add(1)
		go s.syncLater()
	}
	return nil
}

// create writes the marker of a new store.
func (s *Store) create() (*marker, error) {
	if err := notForeign(s.gate, s.dir); err != nil {
		return nil, err
	}
	m := &marker{Format: formatVersion, Shards: s.config.shards}
	if m.Shards == 0 {
		m.Shards = DefaultShards
	}
	if err := m.write(s.config.fs, s.dir); err != nil {
		return nil, fmt.Errorf("diskstore: %w", err)
	}
	return m, nil
}

// notForeign returns an error if a directory has files and no marker. It is called before
// anything is put there, and again under the lock.
func notForeign(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return fmt.Errorf("diskstore: %w", err)
	}
	if slices.Contains(names, markerName) {
		return nil
	}
	for _, name := range names {
		if name != "LOCK" && name != markerName+".tmp" && name != lostAndFound {
			return fmt.Errorf("%w: %s has the file %q, and no file %s", ErrForeign, dir, name, markerName)
		}
	}
	return nil
}

// openDB opens the database. Pebble may end the goroutine that does it: see logger.
func (s *Store) openDB(exists bool) error {
	type result struct {
		db  *pebble.DB
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- result{err: panicked(v)}
			}
		}()
		o := s.pebbleOptions()
		o.ErrorIfNotExists = exists
		db, err := pebble.Open(s.dir, o)
		o.Cache.Unref()
		done <- result{db, err}
	}()
	select {
	case r := <-done:
		s.db = r.db
		return s.openError(r.err)
	case <-s.failed:
		return s.cause
	case err := <-s.gate.stuck:
		s.gate.shut.Store(true)
		s.gate.quiet(s.config.patience)
		if isFull(err) {
			return fmt.Errorf("diskstore: there is no room to write what is in the log to tables, make some and open the store again: %w: %w", store.ErrFull, err)
		}
		return s.openError(fmt.Errorf("what is in the log cannot be written to tables: %w", err))
	}
}

// panicked returns what Pebble has panicked with, when it could not begin a new log, or
// what it has read makes no sense.
func panicked(v any) error {
	if err, ok := v.(error); ok {
		return fmt.Errorf("panic: %w", err)
	}
	return fmt.Errorf("panic: %v", v)
}

// openError says that what cannot be opened is damaged, unless it is the machine that
// refuses: it has no right, no room, or too many files.
func (s *Store) openError(err error) error {
	var refused syscall.Errno
	switch {
	case err == nil, errors.Is(err, ErrDamaged), errors.Is(err, store.ErrSchema):
		return err
	case errors.As(err, &refused) && !missing(err):
		return fmt.Errorf("diskstore: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// load reads what the shards have in memory.
func (s *Store) load(m *marker) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			err = s.openError(v.err)
		default:
			panic(v)
		}
	}()
	s.startClock()
	if s.opened.Unix() < 0 || s.opened.After(lastTime.Std()) {
		return noTime(s.opened)
	}
	for i := range m.Shards {
		sh := newShard(s, i, m.Shards)
		sh.restore(m)
		s.shards = append(s.shards, sh)
	}
	if m.Ready {
		return s.upgrade(m)
	}
	m.Ready, m.Written, m.Log = true, make([]int64, m.Shards), s.newestLog.Load()
	b := s.db.NewBatch()
	for i := range m.Shards {
		if err := b.Set(appendSpace(nil, i, spaceMeta), appendNumbers(nil, new(numbers)), nil); err != nil {
			return err
		}
	}
	if err := s.apply(b); err != nil {
		return fmt.Errorf("diskstore: %w", err)
	}
	if err := s.renewLog(); err != nil {
		return fmt.Errorf("diskstore: %w", err)
	}
	if err := m.write(s.config.fs, s.dir); err != nil {
		return fmt.Errorf("diskstore: %w", err)
	}
	return nil
}

// renewLog has a new store begin another file of the log. Pebble makes the first one
// before it gives the database its format: that file says nowhere what was synced, so
// that damage to it could not be told from where a crash has cut it. From now on the gate
// keeps errors from Pebble, which cannot go on without a log.
func (s *Store) renewLog() error {
	s.gate.armed.Store(true)
	done := make(chan error, 1)
	go func() {
		done <- s.guard(func() error {
			_, err := s.db.AsyncFlush()
			return err
		})
	}()
	select {
	case err := <-done:
		return err
	case <-s.failed:
		return s.cause
	}
}

// apply writes a batch and waits for its sync. It does not go on after the disk has
// failed.
func (s *Store) apply(b *pebble.Batch) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- panicked(v)
			}
		}()
		err := s.db.ApplyNoSyncWait(b, pebble.Sync)
		if err == nil {
			err = b.SyncWait()
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case err := <-s.gate.stuck:
		return err
	case <-s.failed:
		return s.cause
	}
}
