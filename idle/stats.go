package idle

// Stats holds counts since the Monitor was made. At every moment
//
//	Watched = Evicted + Stopped + HandedBack + Watching
//
// if nothing changes while they are taken.
type Stats struct {
	// Watched counts the entries that were made.
	Watched uint64
	// Evicted counts those found idle. Their callbacks have run, are running or will
	// run.
	Evicted uint64
	// Stopped counts those that Stop ended.
	Stopped uint64
	// HandedBack counts those that Close or Shutdown ended, for TakeLeftover.
	HandedBack uint64
	// Watching is how many are watched now.
	Watching int

	// Rearmed counts how often a timer fired whose entry had been touched meanwhile:
	// about once in an entry's timeout.
	Rearmed uint64
	// Rejected counts the calls of Watch that returned an error.
	Rejected uint64
}

func (s *Stats) add(n *Stats) {
	s.Watched += n.Watched
	s.Evicted += n.Evicted
	s.Stopped += n.Stopped
	s.HandedBack += n.HandedBack
	s.Rearmed += n.Rearmed
	s.Rejected += n.Rejected
	s.Watching += int(n.Watched - n.Evicted - n.Stopped - n.HandedBack)
}
