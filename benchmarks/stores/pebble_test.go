package main

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
)

// Bare Pebble writes as many bytes of a task as the store on disk does.
func TestBarePebble_WritesTheSame(t *testing.T) {
	sizes := func(open func(dir string) (side, error)) (found [][2]int) {
		dir := t.TempDir()
		x, err := open(dir)
		require.NoError(t, err)
		ts := tasks(100, func() time.Time { return time.Now().Add(24 * time.Hour) })
		require.NoError(t, x.schedule(context.Background(), ts))
		require.NoError(t, x.close())
		o := bareOptions()
		o.ReadOnly = true
		db, err := pebble.Open(dir, o)
		require.NoError(t, err)
		defer db.Close()
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		defer it.Close()
		for it.First(); it.Valid(); it.Next() {
			if space := it.Key()[2]; space == 't' || space == 'p' {
				found = append(found, [2]int{len(it.Key()), len(it.Value())})
			}
		}
		return found
	}
	disk, bare := sizes(openDisk), sizes(openPebble)
	require.Len(t, disk, 200)
	require.ElementsMatch(t, disk, bare)
}
