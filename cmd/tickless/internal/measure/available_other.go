//go:build !linux

package measure

// AvailableMemory returns how much memory is available without swapping; ok is false if
// the system does not say.
func AvailableMemory() (bytes int64, ok bool) { return 0, false }
