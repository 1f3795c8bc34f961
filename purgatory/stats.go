package purgatory

// Stats holds the gauges and counts of a Purgatory. While no operation is added,
// completed or removed,
//
//	Entered = Completed + Expired + Cancelled + HandedBack + Delayed
type Stats struct {
	// Delayed is the number of operations that are waiting, as Len tells.
	Delayed int
	// Watched is the sum of the lengths of all keys' lists, as Watched tells.
	Watched int
	// Keys is the number of keys that have operations waiting for them.
	Keys int

	// Entered counts the operations that were not complete when they were added, and
	// so waited, if only for an instant.
	Entered uint64
	// Completed counts those of them that were completed before their timeout.
	Completed uint64
	// Expired counts those that were completed by their timeout.
	Expired uint64
	// Cancelled counts those that CancelForKey took out.
	Cancelled uint64
	// HandedBack counts those that Close took out.
	HandedBack uint64

	// Panics counts the panics that went to the panic handler.
	Panics uint64
}

// outcome is why an operation leaves the lists.
type outcome int

const (
	completed outcome = iota
	expired
	cancelled
	handedBack
	// refused: its start has failed. It counts as if it had never entered.
	refused
)

// counts is the part of Stats that a shard keeps, under its lock, for the
// operations whose first key is its own.
type counts struct {
	delayed int
	entered uint64
	left    [refused]uint64 // by outcome
}

func (c *counts) enter() {
	c.delayed++
	c.entered++
}

func (c *counts) leave(why outcome) {
	c.delayed--
	if why == refused {
		c.entered--
		return
	}
	c.left[why]++
}

func (s *Stats) add(c *counts) {
	s.Delayed += c.delayed
	s.Entered += c.entered
	s.Completed += c.left[completed]
	s.Expired += c.left[expired]
	s.Cancelled += c.left[cancelled]
	s.HandedBack += c.left[handedBack]
}
