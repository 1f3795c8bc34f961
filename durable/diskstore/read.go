package diskstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tickless/tickless/durable/store"
)

// read has f read, on a goroutine of its own: a read that the disk does not answer must
// not hold up the caller beyond its context. It reads what is on the disk: if something
// waits for its sync it waits too.
func (s *Store) read(ctx context.Context, shard int, f func(v *view) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.reading.RLock()
	if err := s.begin(ctx); err != nil {
		s.reading.RUnlock()
		return err
	}
	s.readers.Add(1)
	s.reading.RUnlock()
	sh := s.shards[shard]
	done := make(chan error, 1)
	go func() {
		defer s.readers.Done()
		v := &view{sh: sh, ctx: ctx, snap: s.db.NewSnapshot()}
		defer v.snap.Close()
		begun := sh.begun.Load()
		err := f(v)
		if pebble.IsCorruptionError(err) {
			s.fail(err)
			err = s.why()
		}
		// That there is no such task is read as well: it may have been removed just now.
		if (err == nil || errors.Is(err, store.ErrNotFound)) && s.config.every == 0 && sh.synced.Load() < begun {
			err = cmp.Or(sh.call(ctx, &call{look: func() {}}), err)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.failed:
		return s.why()
	}
}

// A view is the state of a shard at one moment.
type view struct {
	sh   *shard
	ctx  context.Context
	snap *pebble.Snapshot
	buf  []byte
}

func (v *view) get(space byte, id string, f func(key, value []byte) error) (ok bool, err error) {
	v.buf = append(appendSpace(v.buf[:0], v.sh.index, space), id...)
	value, done, err := v.snap.Get(v.buf)
	switch err {
	case nil:
	case pebble.ErrNotFound:
		return false, nil
	default:
		return false, err
	}
	defer done.Close()
	return true, f(v.buf, value)
}

// entry returns what is known of a task, or [store.ErrNotFound].
func (v *view) entry(id string) (store.Entry, error) {
	t := task{}
	t.ID = id
	var kind uint32
	ok, err := v.get(spaceTask, id, func(key, value []byte) (err error) {
		kind, err = readEntry(key, value, &t.Entry)
		return err
	})
	if err != nil {
		return store.Entry{}, err
	}
	if !ok {
		return store.Entry{}, store.ErrNotFound
	}
	if t.Handler, t.Schedule, err = v.names(kind); err != nil {
		return store.Entry{}, err
	}
	_, err = v.get(spaceRunning, id, func(key, value []byte) error { return readRunning(key, value, &t) })
	return t.Entry, err
}

// names returns the handler and the schedule of a kind.
func (v *view) names(kind uint32) (handler, schedule string, err error) {
	value, done, err := v.snap.Get(appendKind(nil, v.sh.index, spaceKind, kind))
	if err == pebble.ErrNotFound {
		return "", "", damaged("there is no kind %d", kind)
	}
	if err != nil {
		return "", "", err
	}
	defer done.Close()
	r := read(value)
	handler, schedule = r.string(), r.string()
	return handler, schedule, r.end("kind", nil)
}

// Get returns what is known of a task.
func (s *Store) Get(ctx context.Context, shard int, id string) (e store.Entry, err error) {
	found := new(store.Entry)
	err = s.read(ctx, shard, func(v *view) (err error) {
		*found, err = v.entry(id)
		return err
	})
	if err != nil {
		return store.Entry{}, err
	}
	return *found, nil
}

// iter returns an iterator over the keys that begin with prefix, from a key on. Who has
// it closes it.
func (v *view) iter(prefix, from []byte) (*pebble.Iterator, error) {
	return v.snap.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: after(prefix)})
}

// errEnough ends an iteration that has all that it needs.
var errEnough = errors.New("enough")
