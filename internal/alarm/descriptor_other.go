//go:build !linux

package alarm

import "time"

// A descriptor is not to be had on this system: package time's timer rings alone.
type descriptor struct{}

type closer struct{}

func (closer) close() {}

func (descriptor) isOpen() bool      { return false }
func (descriptor) isHeld() bool      { return false }
func (descriptor) set(time.Duration) {}
func (descriptor) take() closer      { return closer{} }

func (h *hub) openLocked() bool { return false }
func (h *hub) waitLocked()      {}
