package alarm

import "time"

const (
	// A ring through the descriptor costs about 70 us of CPU on a virtual machine,
	// several times as much as one of package time's timer. So only rings that are
	// rare are exact: one in spacing, over more than a burst. (This is the generic
	// cell rate algorithm of ITU-T I.371.)
	spacing = int64(2 * time.Millisecond)
	burst   = 64
	// If the timer rings so late and still before the descriptor, the procs are busy.
	// The descriptor is of no use then, for as long as busyFor.
	busyAfter = int64(200 * time.Microsecond)
	busyFor   = int64(50 * time.Millisecond)
)

// pace decides when rings are to be exact.
type pace struct {
	// tat is when the hub may ring exactly without counting towards the burst: it
	// moves on by spacing with each ring. (The algorithm's theoretical arrival time.)
	tat int64
	// coarse is until when the procs count as busy.
	coarse int64
}

// rare reports whether a ring at a moment is to be exact, if it is the next.
func (p *pace) rare(at int64) bool {
	return at >= p.coarse && p.tat-at <= burst*spacing
}

// ring counts a ring.
func (p *pace) ring(now int64) {
	p.tat = max(p.tat, now)
	if p.tat-now <= burst*spacing {
		p.tat += spacing
	}
}

// late is told by how much the timer was late when it rang before the descriptor.
func (p *pace) late(now, by int64) {
	if by > busyAfter {
		p.coarse = now + busyFor
	}
}
