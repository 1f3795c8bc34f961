//go:build !unix

package sqlitestore

// refuseLockedFile does nothing: the system does not rename over an open file.
func refuseLockedFile(string) error { return nil }

// accessError does nothing: SQLite's error has to do.
func accessError(string, bool) error { return nil }
