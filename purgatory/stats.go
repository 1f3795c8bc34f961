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

	// Entered counts the operations that had to wait: they were not complete when they
	// were added.
	Entered uint64
	// Completed counts the waiting operations that were completed before their timeout.
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
	reasonCompleted leaveReason = iota
	reasonExpired
	reasonCancelled
	reasonHandedBack
	// reasonRefused means that adding the operation failed. Stats.Entered does not count
	// the operation.
	reasonRefused
)

// operationCounts is a shard's part of Stats. It counts the operations whose first key
// belongs to the shard. The shard's lock guards it.
type operationCounts struct {
	delayed      int
	entered      uint64
	leftByReason [reasonRefused]uint64
}

func (c *operationCounts) countEntered() {
	c.delayed++
	c.entered++
}

func (c *operationCounts) countLeave(reason leaveReason) {
	c.delayed--
	if reason == reasonRefused {
		c.entered--
		return
	}
	c.leftByReason[reason]++
}

func (s *Stats) addCounts(c *operationCounts) {
	s.Delayed += c.delayed
	s.Entered += c.entered
	s.Completed += c.leftByReason[reasonCompleted]
	s.Expired += c.leftByReason[reasonExpired]
	s.Cancelled += c.leftByReason[reasonCancelled]
	s.HandedBack += c.leftByReason[reasonHandedBack]
}
