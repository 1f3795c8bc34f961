//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package diskstore

import "io"

// flock locks nothing: there is Pebble's lock.
func flock(string) (io.Closer, error) { return nil, nil }
