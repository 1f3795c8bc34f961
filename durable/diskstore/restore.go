package diskstore

import (
	"cmp"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tickless/tickless/durable/store"
)

// restore reads what the shard has in memory besides the window, which is filled when
// it is served.
func (sh *shard) restore(m *marker) {
	sh.now = sh.s.now()
	sh.waiting, sh.leases = newWheel(sh.now), newWheel(0) // some leases may be over
	found := false
	sh.each(spaceMeta, func(key, value []byte) error {
		found = true
		return readNumbers(key, value, &sh.numbers)
	})
	switch {
	case !m.Ready:
		sh.filter.presence = newPresence(0, sh.filter.bytes)
		return
	case !found:
		panic(failure{damaged("shard %d has no numbers", sh.index)})
	case sh.seq < m.Written[sh.index]:
		panic(failure{damaged("shard %d has %d batches, and had %d", sh.index, sh.seq, m.Written[sh.index])})
	}
	sh.begun.Store(sh.seq)
	sh.written.Store(sh.seq)
	sh.synced.Store(sh.seq)
	sh.each(spaceKind, func(key, value []byte) error {
		if len(key) != kindedLen {
			return damaged("the key %q is no kind", key)
		}
		r := read(value)
		k := &kind{id: binary.BigEndian.Uint32(key[spaceLen:]), handler: r.string(), schedule: r.string()}
		sh.addKind(k)
		return r.end("kind", key)
	})
	sh.each(spaceHead, func(key, value []byte) error {
		id, m, err := readHead(key, value)
		if err != nil {
			return err
		}
		k := sh.byID[id]
		if k == nil {
			return damaged("the key %q is of a kind that there is not", key)
		}
		k.head.mark, k.mark = m, m
		return nil
	})
	sh.restoreSenders()
	sh.each(spaceRunning, func(key, value []byte) error {
		t := &task{saved: saved{state: store.Running}}
		t.ID = string(key[spaceLen:])
		err := readRunning(key, value, t)
		sh.tasks[t.ID] = t
		at := t.At
		// If the clock was set back no lease lasts longer for it.
		if limit := sh.now.Add(t.lease); at > limit {
			at = limit
		}
		t.place, _ = sh.leases.Add(max(1, int64(at)), t)
		sh.running++
		return err
	})
	if sh.pending+sh.dead == 0 && sh.running == 0 {
		sh.filter.presence = newPresence(0, sh.filter.bytes)
	}
}

// each calls f with what is in a space.
func (sh *shard) each(space byte, f func(key, value []byte) error) {
	prefix := appendSpace(nil, sh.index, space)
	it, err := sh.s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	sh.must(err)
	for it.First(); it.Valid() && err == nil; it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = f(it.Key(), value)
		}
	}
	sh.must(cmp.Or(err, it.Error(), it.Close())) // it is closed in any case
}
