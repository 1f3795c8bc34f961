package alarm

import "time"

const (
	// A ring through the descriptor costs about 70 us of CPU on a virtual machine,
	// several times as much as one of package time's timer. So only rings that are
	// rare are exact: at most one in spacing on the average, beyond a burst. While
	// there are more, none is exact; it takes recovery without rings, or longer with
	// some, until they count as rare. (But for that, this is the generic cell rate
	// algorithm of ITU-T I.371.)
	spacing  = int64(2 * time.Millisecond)
	burst    = 64
	recovery = 16 * spacing

	// If the timer rings so late and still before the descriptor, the procs are busy;
	// and so they are if it rings later than it does in an idle process, which rounds
	// its sleep up to a millisecond. That counts for as long as busyFor.
	busyAfter = int64(200 * time.Microsecond)
	lateAfter = int64(1500 * time.Microsecond)
	busyFor   = int64(100 * time.Millisecond)
)

// pace decides when rings are to be exact, and when they need backups.
type pace struct {
	// tat is until when the rings that there were take at one in spacing. (The
	// algorithm's theoretical arrival time.)
	tat int64
	// busyUntil is until when the procs count as busy.
	busyUntil int64
}

// rare reports whether a ring at a moment is to be exact, if it is the next.
func (p *pace) rare(at int64) bool { return !p.busy(at) && p.tat-at <= burst*spacing }

// busy reports whether the procs count as busy at a moment. The descriptor is of no
// use then, and the timer needs backups.
func (p *pace) busy(at int64) bool { return at < p.busyUntil }

// ring counts a ring.
func (p *pace) ring(now int64) {
	p.tat = min(max(p.tat, now)+spacing, now+burst*spacing+recovery)
}

// late is told by how much the timer was late when it rang, and whether it was set to
// ring exactly.
func (p *pace) late(now, by int64, exact bool) {
	if by > lateAfter || exact && by > busyAfter {
		p.busyUntil = now + busyFor
	}
}
