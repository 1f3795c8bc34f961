package diskstore

import "encoding/binary"

// What is remembered of senders is written with what they have sent. One key has all
// those of a batch: their ledger. Most of them send again soon, and are in a later ledger
// then. One in which none is left that is not in a later one is written over by the next;
// those that are left in one that most have gone from move on as well, so that the
// ledgers have four times what is in use at most.

// A ledger is a key on the disk, and the senders that were written there.
type ledger struct {
	id      uint32
	senders []*sender
	live    int  // those of them that are in no later ledger
	leaving bool // what is left is in the batch under way
}

// mostGone is how many of the senders of a ledger have gone, of so many, when the others
// follow: three of four.
const mostGone = 4

// ledgers are those of a shard.
type ledgers struct {
	made uint32 // ids that were given
	free []*ledger
}

// note has the batch under way write a sender.
func (sh *shard) note(x *sender) {
	if !x.noted {
		x.noted = true
		sh.noted = append(sh.noted, x)
	}
}

// depart takes a sender out of its ledger.
func (sh *shard) depart(x *sender) {
	l := x.ledger
	if l == nil {
		return
	}
	x.ledger = nil
	l.live--
	switch {
	case l.live == 0:
		sh.free = append(sh.free, l)
	case !l.leaving && l.live <= len(l.senders)/mostGone:
		l.leaving = true
		for _, y := range l.senders {
			if y.ledger == l {
				sh.note(y)
			}
		}
	}
}

// forget is for a sender that has been gone for long.
func (sh *shard) forget(x *sender) {
	l := x.ledger
	x.gone = true
	sh.depart(x)
	if l != nil && l.live == 0 {
		sh.delete(appendLedger(nil, sh.index, l.id))
	}
}

// writeSenders adds the senders that have to be written to the batch under way.
func (sh *shard) writeSenders() {
	for i := 0; i < len(sh.noted); i++ { // there may come more
		sh.depart(sh.noted[i])
	}
	if len(sh.noted) == 0 {
		return
	}
	l := sh.nextLedger()
	w := writer{append(sh.value[:0], recordVersion)}
	for _, x := range sh.noted {
		x.noted = false
		if x.gone {
			continue
		}
		x.ledger = l
		l.senders = append(l.senders, x)
		w.string(x.name)
		w.int(x.number)
		w.time(x.seen)
		w.bytes(x.answer)
	}
	l.live = len(l.senders)
	clear(sh.noted)
	sh.noted = sh.noted[:0]
	sh.value = w.b
	sh.buf = appendLedger(sh.buf[:0], sh.index, l.id)
	sh.set(sh.buf, sh.value)
}

// nextLedger returns one that is free.
func (sh *shard) nextLedger() *ledger {
	if n := len(sh.free); n > 0 {
		l := sh.free[n-1]
		sh.free = sh.free[:n-1]
		l.senders, l.leaving = l.senders[:0], false
		return l
	}
	l := &ledger{id: sh.made}
	sh.made++
	return l
}

// restoreSenders reads what is remembered of senders: of each what was written last.
func (sh *shard) restoreSenders() {
	sh.each(spaceSender, func(key, value []byte) error {
		x := &sender{name: string(key[spaceLen:])}
		sh.senders[x.name] = x
		sh.note(x) // Open writes them as this version does
		return readSender(key, value, x)
	})
	var all []*ledger
	sh.each(spaceLedger, func(key, value []byte) error {
		if len(key) != spaceLen+4 {
			return damaged("the key %q is no ledger", key)
		}
		l := &ledger{id: binary.BigEndian.Uint32(key[spaceLen:])}
		all = append(all, l)
		sh.made = max(sh.made, l.id+1)
		return readLedger(key, value, func(x sender) {
			there := sh.senders[x.name]
			switch {
			case there == nil:
				there = new(sender)
				sh.senders[x.name] = there
			case there.number > x.number, there.number == x.number && there.seen >= x.seen:
				return
			case there.ledger != nil:
				there.ledger.live--
			}
			x.ledger, x.noted = l, there.noted
			*there = x
			l.senders = append(l.senders, there)
			l.live++
		})
	})
	for _, l := range all {
		if l.live == 0 {
			sh.free = append(sh.free, l)
		}
	}
	for _, x := range sh.senders {
		sh.s.last = max(sh.s.last, x.seen)
		x.seen = min(x.seen, sh.now) // the clock may have been set back
	}
}

func readLedger(key, value []byte, f func(x sender)) error {
	r := read(value)
	for !r.bad && len(r.b) > 0 {
		x := sender{name: r.string(), number: r.int(), seen: r.time(), answer: []byte(r.string())}
		if !r.bad {
			f(x)
		}
	}
	return r.end("ledger", key)
}

// readSender reads what version 1 had of a sender.
func readSender(key, value []byte, x *sender) error {
	r := read(value)
	x.number, x.seen = r.int(), r.time()
	x.answer = append([]byte(nil), r.b...)
	r.b = nil
	return r.end("sender", key)
}
