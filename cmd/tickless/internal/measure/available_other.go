//go:build !linux

package measure

// AvailableMemory returns how much memory the system says can be had without
// swapping; ok is false where it does not tell.
func AvailableMemory() (bytes int64, ok bool) { return 0, false }
