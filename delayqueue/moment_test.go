package delayqueue

import (
	"math"
	"math/big"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/internal/bubble"
)

func TestAdd_Saturates(t *testing.T) {
	for _, a := range []int64{0, 1, 2, math.MaxInt64 - 1, math.MaxInt64} { // the clock's, since the epoch
		for _, b := range []int64{math.MinInt64, math.MinInt64 + 1, -2, -1, 0, 1, 2, math.MaxInt64 - 1, math.MaxInt64} {
			sum := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
			want := sum.Int64()
			if !sum.IsInt64() {
				want = never
			}
			assert.Equal(t, want, saturatingAdd(a, b), "%d + %d", a, b)
		}
	}
}

// setWall moves the wall reading of t by d and keeps the monotonic reading, which t must
// have. Package time has no function for this.
func setWall(t time.Time, d time.Duration) time.Time {
	// wall has a flag bit, 33 bits of seconds since 1885, and 30 bits of nanoseconds. ext
	// is the monotonic reading.
	p := (*struct {
		wall uint64
		ext  int64
	})(unsafe.Pointer(&t))
	p.wall += uint64(int64(d/time.Second)) << 30
	return t
}

func TestSetWall(t *testing.T) {
	now := time.Now()
	for _, d := range []time.Duration{time.Hour, -time.Hour} {
		moved := setWall(now, d)
		require.True(t, bubble.HasMonotonic(moved))
		require.Zero(t, moved.Sub(now), "the monotonic reading moved")
		require.Equal(t, d, moved.Round(0).Sub(now.Round(0)))
	}
}
