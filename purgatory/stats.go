package purgatory

// Stats holds the gauges and counts of a Purgatory. While no operation is added,
// completed or removed:
//
//	Entered = Completed + Expired + Cancelled + HandedBack + Delayed
type Stats struct {
	// Delayed is the number of waiting operations, as returned by Len.
	Delayed int
	// Watched is the sum of the lengths of all keys' lists.
	Watched int
	// Keys is the number of keys that operations wait for.
	Keys int

	// Entered counts the operations that were not complete when they were added.
	Entered uint64
	// Completed counts the entered operations that were completed before their timeout.
	Completed uint64
	// Expired counts the operations that their timeout completed.
	Expired uint64
	// Cancelled counts the operations that CancelForKey removed.
	Cancelled uint64
	// HandedBack counts the operations that Close removed.
	HandedBack uint64

	// Panics counts the panics that went to the panic handler.
	Panics uint64
}

// A leaveReason is why an operation leaves the lists.
type leaveReason int

const (
	completed leaveReason = iota
	expired
	cancelled
	handedBack
	// refused means that adding the operation failed. The operation counts as never
	// entered.
	refused
)

// counts is a shard's part of Stats. It counts the operations whose first key belongs
// to the shard. The shard's lock guards it.
type counts struct {
	delayed  int
	entered  uint64
	byReason [refused]uint64
}

func (c *counts) enter() {
	c.delayed++
	c.entered++
}

func (c *counts) leave(reason leaveReason) {
	c.delayed--
	if reason == refused {
		c.entered--
		return
	}
	c.byReason[reason]++
}

func (s *Stats) add(c *counts) {
	s.Delayed += c.delayed
	s.Entered += c.entered
	s.Completed += c.byReason[completed]
	s.Expired += c.byReason[expired]
	s.Cancelled += c.byReason[cancelled]
	s.HandedBack += c.byReason[handedBack]
}
