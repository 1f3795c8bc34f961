// Package pgtest starts a PostgreSQL server for tests.
//
// The server listens on a free port of 127.0.0.1 and keeps its files in a temporary folder.
// It ends with the test, or with the test's process. Start finds Debian's programs, which
// are not in the PATH, and runs them as another user if the test runs as root, because
// PostgreSQL refuses root.
package pgtest
