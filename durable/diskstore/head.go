package diskstore

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// Where the first task of a kind may be is known while the store is open: see lowest. So
// that a store that is opened again does not look for it among what was deleted in front,
// the disk has a mark for each kind that no Pending task of it comes before: its head.
// A batch that puts a task before the head lowers it, and one that makes it much too low
// raises it. So it is never too high, whatever was on the disk when the process ended. A
// kind of which the disk has none begins at the beginning.

// raiseEvery is how many keys of a kind are deleted until its head is written again. A
// store that was opened after a crash meets that many deleted keys, about, when it looks
// for the first task; one that was closed meets none.
const raiseEvery = 256

// A savedHead is what the disk has, with the batch under way.
type savedHead struct {
	mark   mark
	behind int  // keys that were deleted since it was raised
	moved  bool // by the batch under way
}

// lower sees that the head is not after a task.
func (h *savedHead) lower(m mark) {
	if m.compare(h.mark) < 0 {
		h.mark, h.moved = m, true
	}
}

// raiseHead raises the head of a kind as far as it may be. It does not go beyond now,
// since what comes next is mostly due then or later, and would lower it again.
func (sh *shard) raiseHead(k *kind) {
	k.head.behind = 0
	if m := lower(sh.lowest(k), mark{at: sh.now}); m.compare(k.head.mark) > 0 {
		k.head.mark, k.head.moved = m, true
	}
}

// writeHead adds the head of a kind to a batch, if it has moved.
func (sh *shard) writeHead(b *pebble.Batch, k *kind) {
	if !k.head.moved {
		return
	}
	k.head.moved = false
	w := writer{append(sh.value[:0], recordVersion)}
	w.time(k.head.mark.at)
	w.string(k.head.mark.id)
	sh.value = w.b
	sh.buf = appendKind(sh.buf[:0], sh.index, spaceHead, k.id)
	sh.must(b.Set(sh.buf, sh.value, nil))
}

func readHead(key, value []byte) (kind uint32, m mark, err error) {
	if len(key) != kindedLen {
		return 0, m, damaged("the key %q is no head", key)
	}
	r := read(value)
	m = mark{r.time(), r.string()}
	return binary.BigEndian.Uint32(key[spaceLen:]), m, r.end("head", key)
}

// writeHeads raises all heads as far as they may be, for Close, when the shards are over.
// That it was not done does no harm.
func (s *Store) writeHeads() error {
	b := s.db.NewBatch()
	for _, sh := range s.shards {
		sh.now = s.now()
		for _, k := range sh.kinds {
			if k.head.behind > 0 {
				sh.raiseHead(k)
				sh.writeHead(b, k)
			}
		}
	}
	if b.Empty() {
		return b.Close()
	}
	return s.db.Apply(b, pebble.NoSync)
}

// heads returns the heads of the kinds, by id; a kind that has none has the zero mark.
func (v *view) heads() (map[uint32]mark, error) {
	all := make(map[uint32]mark)
	prefix := appendSpace(nil, v.sh.index, spaceHead)
	err := v.each(prefix, prefix, func(key, value []byte) error {
		id, m, err := readHead(key, value)
		all[id] = m
		return err
	})
	return all, err
}
