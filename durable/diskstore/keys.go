package diskstore

import (
	"encoding/binary"

	"github.com/tickless/tickless/durable/store"
)

// A shard's keys begin with its number and the letter of a space:
//
//	m                  the shard's numbers
//	k kind             a kind: a handler and a schedule
//	h kind             no Pending task of the kind comes before this: its head
//	t id               a task, as it was when it last became Pending or Dead
//	p kind time id     a Pending task, in the order in which its kind is due
//	r id               a Running task: what its lease changes of the task
//	d time id          a Dead task
//	l number           a ledger: the latest commands of some senders, and their answers
//	s sender           the same of one sender, in a directory of version 1
//
// Each task has a key in t and one in p, r or d. Numbers are big-endian, so that keys
// are in the order of what they say.
const (
	spaceMeta    = 'm'
	spaceKind    = 'k'
	spaceHead    = 'h'
	spaceTask    = 't'
	spacePending = 'p'
	spaceRunning = 'r'
	spaceDead    = 'd'
	spaceLedger  = 'l'
	spaceSender  = 's'
)

const (
	spaceLen  = 3            // the shard and the space
	kindedLen = spaceLen + 4 // and a kind
)

// appendSpace appends the beginning of the keys of a space.
func appendSpace(b []byte, shard int, space byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(shard)), space)
}

func (sh *shard) key(space byte, id string) []byte {
	sh.buf = append(appendSpace(sh.buf[:0], sh.index, space), id...)
	return sh.buf
}

// appendKind appends the key of a kind, in the space of kinds or of heads.
func appendKind(b []byte, shard int, space byte, kind uint32) []byte {
	return binary.BigEndian.AppendUint32(appendSpace(b, shard, space), kind)
}

func appendLedger(b []byte, shard int, id uint32) []byte {
	return binary.BigEndian.AppendUint32(appendSpace(b, shard, spaceLedger), id)
}

func appendPending(b []byte, shard int, kind uint32, at store.Time, id string) []byte {
	b = binary.BigEndian.AppendUint32(appendSpace(b, shard, spacePending), kind)
	return append(binary.BigEndian.AppendUint64(b, uint64(at)), id...)
}

func appendDead(b []byte, shard int, at store.Time, id string) []byte {
	return append(binary.BigEndian.AppendUint64(appendSpace(b, shard, spaceDead), uint64(at)), id...)
}

// parseTimed returns the time and the id of a key of p or d, the time of which begins
// at n.
func parseTimed(key []byte, n int) (at store.Time, id []byte, err error) {
	if len(key) <= n+8 {
		return 0, nil, damaged("the key %q is too short", key)
	}
	at = store.Time(binary.BigEndian.Uint64(key[n:]))
	if at < 0 || at > store.Farthest {
		return 0, nil, damaged("the key %q has no time", key)
	}
	return at, key[n+8:], nil
}

// after returns the first key that does not begin with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
