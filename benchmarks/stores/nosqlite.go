//go:build !sqlite

package main

import "errors"

func openTable(string) (side, error) {
	return nil, errors.New("SQLite takes a minute to compile and is left out: go run -tags sqlite")
}
