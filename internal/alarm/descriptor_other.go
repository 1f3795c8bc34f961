//go:build !linux

package alarm

import "time"

// descriptor is what makes the alarm exact: nothing, here.
type descriptor struct{}

type noFile struct{}

func (noFile) Close() error { return nil }

func (descriptor) isOpen() bool       { return false }
func (descriptor) set(time.Duration)  {}
func (descriptor) takeLocked() noFile { return noFile{} }

func (a *system) openLocked() bool { return false }
func (a *system) replaceLocked()   {}
