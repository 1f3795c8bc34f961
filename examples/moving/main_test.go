package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Wherever the deadlines are, the program does the same.
func TestShop(t *testing.T) {
	for name, addr := range map[string]string{"local": "", "store": inMemory, "redis": "in-process"} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, run(&out, addr))
			require.Equal(t, "order-1 expired: 12 EUR\norder-3 expired: 56 EUR\n", out.String())
		})
	}
}

func TestShop_ServerThatIsNotThere(t *testing.T) {
	require.Error(t, run(new(bytes.Buffer), "127.0.0.1:1"))
}
