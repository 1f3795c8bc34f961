package keyed_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/timer"
)

// The test measures the memory of a pending string key with an int, without the bytes
// of the string.
func TestMemory_OfAKey(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the figures are those of 64 bits")
	}
	for _, n := range []int{50_000, 60_000, 70_000, 80_000, 90_000, 110_000, 130_000} {
		names := make([]string, n)
		for i := range names {
			names[i] = "session-" + strconv.Itoa(i)
		}
		s := timer.New()
		before := heapInUse()
		k := keyed.New(s, func(string, int) {})
		for i, name := range names {
			require.NoError(t, k.Set(name, i, time.Hour))
		}
		each := float64(heapInUse()-before) / float64(n)
		t.Logf("%d keys: %.1f bytes each", n, each)
		require.LessOrEqual(t, each, 210.0)
		runtime.KeepAlive(k)
		runtime.KeepAlive(names)
		s.Close()
	}
}
