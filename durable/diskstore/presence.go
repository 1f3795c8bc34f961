package diskstore

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/bits-and-blooms/bloom/v3"
	"github.com/cockroachdb/pebble/v2"
)

// Whether there is a task with a key is asked for each that is scheduled, and mostly
// there is none. To ask the database, each of its tables in memory and the filters of
// each level, takes longer than to write the task. So a shard has a Bloom filter of the
// keys that it has. Its memory is bounded: with more tasks than it is good for there is
// none, and the database is asked.
//
// The filter does not forget the keys of tasks that are gone, and one that was full, or
// that of a store that was opened with tasks in it, has to be made from the indexes on
// the disk. That is worth it when many lookups in the database were in vain: a part of
// the tasks that would have to be read. A store that is not used reads nothing.
const (
	// presenceBytes is the memory of a Store's filters at most. Those that are being made
	// again take as much beside them, since the old ones are of use until then.
	presenceBytes = 16 << 20
	// bitsPerKey is what a filter has when it is as full as it was made for: then one
	// lookup of a hundred is in vain.
	bitsPerKey = 10
	// leastBits is what a filter is worse with than none.
	leastBits = 6
	// leastKeys is what any filter is made for.
	leastKeys = 128 << 10
	// vainShare is how many tasks are read for each lookup that was in vain.
	vainShare = 32
	leastVain = 2048
	// hashes is how many bits of a filter a key sets.
	hashes = 6
)

// A presence is a Bloom filter of the hashes of keys.
type presence struct{ *bloom.BloomFilter }

// newPresence returns a filter for a number of keys, or for as many as there is memory
// for; nil if there are too many.
func newPresence(keys, bytes int) *presence {
	most := bytes * 8
	if keys*leastBits > most {
		return nil
	}
	return &presence{bloom.New(uint(min(most, max(leastKeys, 2*keys)*bitsPerKey)), hashes)}
}

func (p *presence) add(hash uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], hash)
	p.Add(b[:])
}

// has reports whether a key may be there: false is certain.
func (p *presence) has(hash uint64) bool {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], hash)
	return p.Test(b[:])
}

// A filter is a shard's knowledge of which keys there are.
type filter struct {
	seed     maphash.Seed
	bytes    int // the memory that it may take
	least    int // lookups in vain until it is made again, at least
	presence *presence
	vain     int // lookups in the database that found nothing

	// hashed is the latest id of which the hash was asked for: mostly it is asked
	// whether there is a task with an id, and then one is added.
	hashed string
	hash   uint64

	// While the next one is made presence stays, and added has the keys that come
	// meanwhile.
	making bool
	added  []uint64
	made   chan *presence
}

func newFilter(c *config, shards int) filter {
	return filter{seed: maphash.MakeSeed(), bytes: c.filter / shards, least: c.vain, made: make(chan *presence, 1)}
}

// hashOf returns the hash of an id.
func (f *filter) hashOf(id string) uint64 {
	if id != f.hashed || id == "" {
		f.hashed, f.hash = id, maphash.String(f.seed, id)
	}
	return f.hash
}

// absent reports whether there is no task with the id for certain.
func (f *filter) absent(id string) bool {
	return f.presence != nil && !f.presence.has(f.hashOf(id))
}

// add notes that there is a task with the id.
func (f *filter) add(id string) {
	if f.presence == nil && !f.making {
		return
	}
	hash := f.hashOf(id)
	if f.presence != nil {
		f.presence.add(hash)
	}
	if f.making {
		f.added = append(f.added, hash)
	}
}

// refilter takes a filter that was made, or has one made. It is called between batches.
func (sh *shard) refilter() {
	f := &sh.filter
	select {
	case p := <-f.made:
		for _, hash := range f.added {
			p.add(hash)
		}
		f.presence, f.making, f.added, f.vain = p, false, nil, 0
	default:
	}
	tasks := int(sh.pending+sh.dead) + sh.running
	if f.making || f.vain < max(f.least, tasks/vainShare) {
		return
	}
	f.vain = 0
	p := newPresence(tasks, f.bytes)
	if p == nil {
		f.presence = nil // too full to be of use
		return
	}
	f.making = true
	snap := sh.s.db.NewSnapshot()
	sh.s.running.Add(1)
	go func() {
		defer sh.s.running.Done()
		err := sh.readIDs(snap, func(id []byte) { p.add(maphash.Bytes(f.seed, id)) })
		_ = snap.Close()
		switch err {
		case nil:
			f.made <- p
		case errEnough:
		default:
			sh.s.fail(err)
		}
	}()
}

// readIDs calls f with the id of each task that a snapshot has. It returns errEnough if
// the store is over meanwhile.
func (sh *shard) readIDs(snap *pebble.Snapshot, f func(id []byte)) error {
	for _, x := range []struct {
		space byte
		head  int
	}{{spaceDead, spaceLen + 8}, {spacePending, kindedLen + 8}, {spaceRunning, spaceLen}} {
		prefix := appendSpace(nil, sh.index, x.space)
		it, err := snap.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
		if err != nil {
			return err
		}
		n := 0
		for it.First(); it.Valid() && err == nil; it.Next() {
			if key := it.Key(); len(key) > x.head {
				f(key[x.head:])
			}
			if n++; n%1024 == 0 {
				select {
				case <-sh.s.over:
					err = errEnough
				default:
				}
			}
		}
		if err == nil {
			err = it.Error()
		}
		if closed := it.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	return nil
}
