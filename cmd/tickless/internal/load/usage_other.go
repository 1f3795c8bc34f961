//go:build !unix

package load

// readUsage returns what the process has used so far; ok is false where the
// system does not tell.
func readUsage() (u usage, ok bool) { return usage{}, false }
