package memstore

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A sender is what a shard remembers of who has sent a command: the latest one, and
// its answer.
type sender struct {
	number   int64
	outcomes []store.Outcome // of a Command
	answer   store.Answer    // of a Round, all but its tasks
	holds    []store.Hold    // these
	seen     store.Time
}

// memory is how long a sender is remembered.
const memory = 24 * time.Hour

// admit looks whether a command may be carried out. It returns the sender's memory of
// it, if it was carried out before, or an error if it must not be.
func (sh *shard) admit(s *store.Stamp, now store.Time) (again *sender, err error) {
	x := sh.senders[s.Sender]
	if x != nil && s.Number < x.number {
		return nil, store.ErrStale
	}
	if x != nil && s.Number == x.number {
		x.seen = now
		return x, nil
	}
	if s.Until != 0 && now > s.Until {
		return nil, store.ErrLate
	}
	return nil, nil
}

// remember keeps the answer to a command that was carried out.
func (sh *shard) remember(s *store.Stamp, x *sender, now store.Time) {
	if sh.senders[s.Sender] == nil {
		sh.sweep(now)
	}
	x.number, x.seen = s.Number, now
	sh.senders[s.Sender] = x
}

// sweep looks at some senders, and forgets those that have been gone for long: their
// commands, and what they could run.
func (sh *shard) sweep(now store.Time) {
	n := 0
	for name, x := range sh.senders { // which begins anywhere
		_, worker := sh.workers[name] // of a store that is paused, one may have had nothing to ask for
		if now.Sub(x.seen) > memory && !(worker && sh.paused) {
			delete(sh.senders, name)
			delete(sh.workers, name)
		}
		if n++; n == 8 {
			return
		}
	}
}
