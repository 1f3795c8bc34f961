package idle

// Stats holds counts since the Monitor was made. Always
//
//	Watched = Evicted + Stopped + HandedBack + Watching
type Stats struct {
	// Watched counts the entries that Watch has made.
	Watched uint64
	// Evicted counts the entries that were idle at their check. Their callbacks have
	// run, are running or will run.
	Evicted uint64
	// Stopped counts the entries that Stop ended.
	Stopped uint64
	// HandedBack counts the entries that Close or Shutdown left for TakeLeftover.
	HandedBack uint64
	// Watching is the number of entries that are watched now.
	Watching int

	// Rearmed counts the checks after which the entry stayed watched: about one per
	// entry and timeout.
	Rearmed uint64
	// Rejected counts the calls of Watch that returned an error.
	Rejected uint64
}

func (s *Stats) addCounts(n *Stats) {
	s.Watched += n.Watched
	s.Evicted += n.Evicted
	s.Stopped += n.Stopped
	s.HandedBack += n.HandedBack
	s.Rearmed += n.Rearmed
	s.Rejected += n.Rejected
	s.Watching += int(n.Watched - n.Evicted - n.Stopped - n.HandedBack)
}
