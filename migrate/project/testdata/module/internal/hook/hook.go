// Package hook is what tests replace.
package hook

import "time"

// AfterFunc is exported, but only to this module.
var AfterFunc = time.AfterFunc

// Pending is one that was started.
type Pending struct {
	Timer *time.Timer
}
