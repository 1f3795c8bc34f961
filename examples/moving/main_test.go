package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program prints the same with every implementation of deadlines.
func TestShop(t *testing.T) {
	for name, b := range map[string]backend{"local": {}, "memory": {inMemory: true}, "file": {filePath: filepath.Join(t.TempDir(), "shop.db")}, "redis": {redisAddr: "in-process"}} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, runShop(&out, b.open))
			require.Equal(t, "order-1 expired: 12 EUR\norder-3 expired: 56 EUR\n", out.String())
		})
	}
}

func TestShop_ServerThatIsNotThere(t *testing.T) {
	require.Error(t, runShop(new(bytes.Buffer), backend{redisAddr: "127.0.0.1:1"}.open))
}

// openOthers returns deadlines that also report an order of another process, and report
// order-1 twice.
func openOthers(f expiryFunc) (deadlines, error) {
	return newTimerDeadlines(func(order string, amount []byte) {
		if order == "order-1" {
			f("order-7", []byte("78 EUR"))
			f("order-1", amount)
		}
		f(order, amount)
	})
}

func TestShop_OrdersOfOthers(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, runShop(&out, openOthers))
	require.Equal(t, "order-7 expired: 78 EUR\norder-1 expired: 12 EUR\norder-1 expired: 12 EUR\norder-3 expired: 56 EUR\n", out.String())
}
