package idle

// Stats are counts since the Monitor was made. At every moment
//
//	Watched = Evicted + Stopped + HandedBack + Watching
//
// if nothing changes while they are taken.
type Stats struct {
	// Watched counts what began to be watched.
	Watched uint64
	// Evicted counts what was found idle. Its callback has run, runs or will.
	Evicted uint64
	// Stopped counts what was stopped before.
	Stopped uint64
	// HandedBack counts what Close or Shutdown has taken out.
	HandedBack uint64
	// Watching is what is watched now.
	Watching int

	// Rearmed counts how often a timer ended before its entry was idle, which had
	// been touched meanwhile: about once in an entry's timeout.
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
