//go:build !unix

package measure

// ReadUsage returns what the process has used so far; ok is false where the
// system does not tell.
func ReadUsage() (u Usage, ok bool) { return Usage{}, false }
