//go:build !linux

package alarm

import (
	"io"
	"time"
)

// descriptor is what makes the hub exact: nothing, here.
type descriptor struct{}

func (descriptor) isOpen() bool          { return false }
func (descriptor) set(time.Duration)     {}
func (descriptor) takeLocked() io.Closer { return nil }
func (descriptor) awaitLocked(*member)   {}

func (h *hub) openLocked() bool    { return false }
func (h *hub) replaceLocked() bool { return false }
