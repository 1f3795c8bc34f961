package store

// maxInnocentCrashes is how many crashes a run may have before it is a suspect.
const maxInnocentCrashes = 2

// IsSuspect reports whether a run with so many crashes is a suspect: it may be the cause
// of its crashes, and crash the next worker too. A run is a suspect from its third crash
// on, or from its last but one if fewer than four are allowed. If only one is allowed, no
// run is a suspect.
//
// A worker runs few suspects at a time, so that a suspect that crashes it buries no others.
// Tasks that are not suspects never wait for suspects.
func IsSuspect(crashes, maxCrashes int) bool {
	return maxCrashes > 1 && crashes >= min(maxInnocentCrashes+1, maxCrashes-1)
}

// WaitingSuspects says which suspect waits after a claim.
type WaitingSuspects uint8

const (
	// NoneWaits means that the claim got all due suspects that it matches, or its Max.
	NoneWaits WaitingSuspects = iota
	// SomeWait means that more suspects are due than the claim's Suspects.
	SomeWait
	// LastWaits means that the suspect that is due first needs a claim with OnlySuspect:
	// its next crash makes it a dead letter. No other suspect overtakes it.
	LastWaits
)
