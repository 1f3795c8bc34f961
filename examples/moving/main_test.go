package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Wherever the deadlines are, the program does the same.
func TestShop(t *testing.T) {
	for name, w := range map[string]where{"local": {}, "memory": {memory: true}, "disk": {dir: t.TempDir()}, "redis": {redis: "in-process"}} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, shop(&out, w.open))
			require.Equal(t, "order-1 expired: 12 EUR\norder-3 expired: 56 EUR\n", out.String())
		})
	}
}

func TestShop_ServerThatIsNotThere(t *testing.T) {
	require.Error(t, shop(new(bytes.Buffer), where{redis: "127.0.0.1:1"}.open))
}

// A directory that another process has is an error that says so.
func TestShop_DirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	d, err := newOnDisk(dir, nil)
	require.NoError(t, err)
	require.ErrorContains(t, shop(new(bytes.Buffer), where{dir: dir}.open), "in use")
	require.NoError(t, d.Close())
}
