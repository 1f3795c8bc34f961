package diskstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tickless/tickless/durable/store"
)

// A Verification is what Verify has found.
type Verification struct {
	Pending, Running, Dead int64 // tasks in each state
	// Wrong are keys that do not fit together: a task that no index has, an index
	// without its task, a number that is not what was counted. There are none unless a
	// file was damaged, or the package has a bug. Problems describes the first ones.
	Wrong    int64
	Problems []string
}

// maxProblems is how many problems are described.
const maxProblems = 20

func (x *Verification) wrong(format string, args ...any) {
	if x.Wrong++; len(x.Problems) < maxProblems {
		x.Problems = append(x.Problems, fmt.Sprintf(format, args...))
	}
}

// Check opens the store in a directory, reads all of it, as [Store.Verify] does, and
// closes it. It makes no store: where there is none, or what an Open that failed has left
// of one, the error wraps [fs.ErrNotExist]. O(n).
func Check(ctx context.Context, dir string, opts ...Option) (Verification, error) {
	c := newConfig(opts)
	if there, err := isThere(c.fs, dir); err == nil && !there {
		return Verification{}, fmt.Errorf("diskstore: there is no store in %q: %w", dir, fs.ErrNotExist)
	}
	s, err := Open(dir, opts...)
	if err != nil {
		return Verification{}, err
	}
	v, err := s.Verify(ctx)
	return v, errors.Join(err, s.Close())
}

// Exists reports whether there is a store in a directory that [Open] would not have to
// make, or to finish. It takes no lock, and leaves the directory as it is. Where there is
// something else, or something that cannot be read, it reports true: Open says what it is.
func Exists(dir string, opts ...Option) (bool, error) { return isThere(newConfig(opts).fs, dir) }

// isThere is Exists.
func isThere(disk vfs.FS, dir string) (bool, error) {
	if _, err := disk.List(dir); err != nil {
		if missing(err) {
			return false, nil
		}
		return false, fmt.Errorf("diskstore: %w", err)
	}
	switch m, err := readMarker(disk, dir); {
	case err != nil:
		return true, nil
	case m != nil:
		return m.Ready, nil
	}
	return notForeign(disk, dir) != nil, nil
}

// Verify reads all that the Store has, beside the traffic: the checksum of each block,
// each key, and whether the keys fit together. It returns an error that wraps
// [ErrDamaged] if something cannot be read, or does not fit. O(n).
func (s *Store) Verify(ctx context.Context) (Verification, error) {
	x := new(Verification)
	for shard := range s.shards {
		found := *x
		err := s.read(ctx, shard, func(v *view) error { return v.verify(&found) })
		if err != nil {
			return *x, err
		}
		*x = found
	}
	if x.Wrong > 0 {
		return *x, damaged("%d keys do not fit together: %q", x.Wrong, x.Problems)
	}
	return *x, nil
}

// verify looks at every key of the shard.
func (v *view) verify(x *Verification) error {
	before := *x
	var n numbers
	if ok, err := v.get(spaceMeta, "", func(key, value []byte) error { return readNumbers(key, value, &n) }); err != nil || !ok {
		return errors.Join(err, ifNot(ok, "shard %d has no numbers", v.sh.index))
	}
	kinds := make(map[uint32]bool)
	err := v.kinds(func(id uint32, _ string) error {
		kinds[id] = true
		return nil
	})
	if err != nil {
		return err
	}
	heads, err := v.heads()
	if err != nil {
		return err
	}
	// Each task has an index...
	prefix := appendSpace(nil, v.sh.index, spaceTask)
	err = v.each(prefix, prefix, func(key, value []byte) error {
		t := task{}
		t.ID = string(key[spaceLen:])
		kind, err := readEntry(key, value, &t.Entry)
		if err != nil {
			return err
		}
		if !kinds[kind] {
			x.wrong("shard %d: the task %q has a kind that there is not", v.sh.index, t.ID)
		}
		runs, err := v.get(spaceRunning, t.ID, func(key, value []byte) error { return readRunning(key, value, &t) })
		if err != nil {
			return err
		}
		switch indexed, err := v.indexed(&t.Entry, kind); {
		case err != nil:
			return err
		case !runs && !indexed:
			x.wrong("shard %d: the %v task %q is in no index", v.sh.index, t.State, t.ID)
		}
		switch t.State {
		case store.Pending:
			if t.mark().compare(heads[kind]) < 0 {
				x.wrong("shard %d: the task %q comes before the head of its kind", v.sh.index, t.ID)
			}
			x.Pending++
		case store.Running:
			x.Running++
		case store.Dead:
			x.Dead++
		}
		return nil
	})
	if err != nil {
		return err
	}
	// ...so that as many keys in the indexes as tasks are one for each.
	indexed := int64(0)
	for _, space := range []byte{spacePending, spaceRunning, spaceDead} {
		prefix := appendSpace(nil, v.sh.index, space)
		if err := v.each(prefix, prefix, func(_, _ []byte) error { indexed++; return nil }); err != nil {
			return err
		}
	}
	pending, running, dead := x.Pending-before.Pending, x.Running-before.Running, x.Dead-before.Dead
	if indexed != pending+running+dead {
		x.wrong("shard %d: the indexes have %d keys, for %d tasks", v.sh.index, indexed, pending+running+dead)
	}
	if pending != n.pending || dead != n.dead {
		x.wrong("shard %d: it counts %d pending and %d dead tasks, and has %d and %d", v.sh.index, n.pending, n.dead, pending, dead)
	}
	return nil
}

func ifNot(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return damaged(format, args...)
}

// indexed reports whether the index has a Pending or Dead task.
func (v *view) indexed(e *store.Entry, kind uint32) (bool, error) {
	var key []byte
	switch e.State {
	case store.Pending:
		key = appendPending(nil, v.sh.index, kind, e.At, e.ID)
	case store.Dead:
		key = appendDead(nil, v.sh.index, e.At, e.ID)
	default:
		return false, nil
	}
	return v.get(key[spaceLen-1], string(key[spaceLen:]), func(_, _ []byte) error { return nil })
}

// Repair looks at every task of the shard. There is nothing to put right: no command is
// ever half done. What is damaged is an error, that of [Store.Verify]. O(n).
func (s *Store) Repair(ctx context.Context, shard int) (store.Repair, error) {
	x := new(Verification)
	if err := s.read(ctx, shard, func(v *view) error { return v.verify(x) }); err != nil {
		return store.Repair{}, err
	}
	if x.Wrong > 0 {
		return store.Repair{}, damaged("%d keys do not fit together: %q", x.Wrong, x.Problems)
	}
	return store.Repair{Looked: x.Pending + x.Running + x.Dead}, nil
}
