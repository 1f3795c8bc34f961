// Package hook is what tests replace.
package hook

import "time"

// AfterFunc is exported, but only to this module.
var AfterFunc = time.AfterFunc

// Pending is one that was started.
type Pending struct {
	Timer *time.Timer
}

// Later is told by the hook.
func Later(d time.Duration, f func()) Pending {
	return Pending{Timer: AfterFunc(d, f)}
}
