package diskstore

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A sender is what a shard remembers of who has sent a command: the number of the
// latest one, and its answer. What a claim has got is known by the tasks that run.
type sender struct {
	name   string
	number int64
	seen   store.Time
	answer []byte // as appendOutcomes or appendAnswer has it

	ledger *ledger // where it is on the disk; nil: nowhere
	noted  bool    // the batch under way writes it
	gone   bool    // it was forgotten
}

// memory is how long a sender is remembered.
const memory = 24 * time.Hour

// admit looks whether a command may be carried out. It returns the sender's memory of
// it, if it was carried out before, or an error if it must not be.
func (sh *shard) admit(s *store.Stamp, now store.Time) (again *sender, err error) {
	x := sh.senders[s.Sender]
	switch {
	case x != nil && s.Number < x.number:
		return nil, store.ErrStale
	case x != nil && s.Number == x.number:
		sh.remember(s, x.answer, now)
		return x, nil
	case s.Until != 0 && now > s.Until:
		return nil, store.ErrLate
	}
	return nil, nil
}

// remember keeps the answer to a command that was carried out.
func (sh *shard) remember(s *store.Stamp, answer []byte, now store.Time) {
	x := sh.senders[s.Sender]
	if x == nil {
		sh.sweep(now)
		x = &sender{name: s.Sender}
		sh.senders[s.Sender] = x
	}
	x.number, x.seen, x.answer = s.Number, now, answer
	sh.note(x)
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
			sh.forget(x)
		}
		if n++; n == 8 {
			return
		}
	}
}

func appendOutcomes(out []store.Outcome) []byte {
	b := make([]byte, len(out))
	for i, o := range out {
		b[i] = byte(o)
	}
	return b
}

func readOutcomes(b []byte) []store.Outcome {
	var out []store.Outcome
	for _, x := range b {
		out = append(out, store.Outcome(x))
	}
	return out
}

// appendAnswer appends what a repeated round is told about reports and extensions.
func appendAnswer(a *store.Answer) []byte {
	w := writer{make([]byte, 0, 4+len(a.Receipts)+len(a.Leases))}
	w.uint(uint64(len(a.Receipts)))
	for _, x := range a.Receipts {
		w.byte(byte(x))
	}
	for _, l := range a.Leases {
		w.byte(byte(l))
	}
	return w.b
}

func readAnswer(b []byte, a *store.Answer) {
	r := reader{b: b}
	for range r.count(store.MaxBatch) {
		a.Receipts = append(a.Receipts, store.Receipt(r.byte()))
	}
	for _, x := range r.b {
		a.Leases = append(a.Leases, store.Lease(x))
	}
}
