package diskstore

import (
	"errors"
	"reflect"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tickless/tickless/durable/store"
)

// WithFS has a Store work on another file system.
func WithFS(fs vfs.FS) Option { return option(func(c *config) { c.fs = fs }) }

// WithWindow has a shard keep that many tasks in memory, and read that many keys at a
// time.
func WithWindow(tasks, page int) Option {
	return option(func(c *config) { c.window, c.batch = tasks, page })
}

// WithVain has a shard make the filter of its keys again after that many lookups in vain
// at least.
func WithVain(n int) Option { return option(func(c *config) { c.vain = n }) }

// WithRaise has the head of a kind raised after so many keys that were deleted.
func WithRaise(n int) Option { return option(func(c *config) { c.raise = n }) }

// WithLogAge has a Store look as often as that whether its log is there.
func WithLogAge(d time.Duration) Option { return option(func(c *config) { c.logAge = d }) }

// WithPause has a Store wait that long before it tries to open a file again.
func WithPause(d time.Duration) Option { return option(func(c *config) { c.pause = d }) }

// WithPatience has Close wait that long for a disk that does not answer.
func WithPatience(d time.Duration) Option { return option(func(c *config) { c.patience = d }) }

// WithMemTable has the database make tables of that size.
func WithMemTable(bytes int) Option { return option(func(c *config) { c.memTable = bytes }) }

// WriteNewerMarker makes a directory one of a version that is to come.
func WriteNewerMarker(dir string) error {
	return (&marker{Format: formatVersion + 1, Shards: 4}).write(vfs.Default, dir)
}

// MarkerIsCurrent reports whether the marker has the newest file of the log.
func MarkerIsCurrent(s *Store) bool {
	m, err := readMarker(s.config.fs, s.dir)
	return err == nil && m != nil && m.Log == s.newestLog.Load()
}

// FailsWhileItsGroupIsAwaited reports whether a syncer that waits for the group of a shard
// gets none when the shard has failed.
func FailsWhileItsGroupIsAwaited() bool {
	sh := &shard{s: &Store{failed: make(chan struct{})}, groups: make(chan group, 1)}
	close(sh.s.failed)
	close(sh.groups)
	_, ok := sh.await()
	return !ok
}

// Batches returns how many batches of the first shard were written, and how many have not
// been answered.
func Batches(s *Store) (written int64, unanswered int) {
	return s.shards[0].written.Load(), len(s.shards[0].open)
}

// Placing reports whether a copy has the place to itself.
func Placing(s *Store) bool {
	free := s.placing.TryLock()
	if free {
		s.placing.Unlock()
	}
	return !free
}

// LookForRoom has the next command look at the disk.
func LookForRoom(s *Store) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.room.at = time.Time{}
}

// Level0IsHigh reports whether writes wait for level 0.
func Level0IsHigh(s *Store) bool { return s.isHigh() }

// SampleRecords returns a value of each kind.
func SampleRecords() [][]byte {
	t := &task{Entry: store.Entry{State: store.Pending, At: 7, Due: 5, Attempts: 2, Failures: []store.Failure{{Attempt: 1, Time: 3, Text: "text"}}}}
	t.ID, t.Record = "k", []byte("record")
	b := [][]byte{appendEntry(nil, &t.Entry, 3)}
	t.sender, t.number, t.lease, t.NextTask = "s", 9, time.Second, &store.Task{ID: "k", Handler: "h", Record: []byte("next")}
	return append(b, appendRunning(nil, t), appendNumbers(nil, &numbers{seq: 5, pending: 2}), append([]byte{recordVersion, 2, 4}, 1, 1),
		[]byte{recordVersion, 14, 2, 'k', '1'}, []byte{recordVersion, 1, 's', 18, 8, 2, 1, 1, 1, 't', 2, 4, 0})
}

// ReadRecords reads bytes as each kind of value. What can be read is what was written.
func ReadRecords(fail func(string, ...any), b []byte) {
	same := func(what string, err error, again func() []byte, read func(b []byte) error) {
		if err == nil {
			if err := read(again()); err != nil {
				fail("%s: what was read and written cannot be read: %v", what, err)
			}
		} else if !errors.Is(err, ErrDamaged) {
			fail("%s: %v", what, err)
		}
	}
	var e store.Entry
	kind, err := readEntry(nil, b, &e)
	same("entry", err, func() []byte { return appendEntry(nil, &e, kind) }, func(b []byte) error {
		var other store.Entry
		_, err := readEntry(nil, b, &other)
		if !reflect.DeepEqual(e, other) {
			fail("%+v became %+v", e, other)
		}
		return err
	})
	var t task
	same("running", readRunning(nil, b, &t), func() []byte { return appendRunning(nil, &t) }, func(b []byte) error { return readRunning(nil, b, new(task)) })
	var n numbers
	same("numbers", readNumbers(nil, b, &n), func() []byte { return appendNumbers(nil, &n) }, func(b []byte) error { return readNumbers(nil, b, new(numbers)) })
	_, _, _ = readHead(make([]byte, kindedLen), b)
	_ = readLedger(nil, b, func(x sender) { readOutcomes(x.answer) })
	var x sender
	_ = readSender(nil, b, &x)
	readOutcomes(x.answer)
	readAnswer(x.answer, new(store.Answer))
	_, _ = parseCursor(store.Cursor(b))
}
