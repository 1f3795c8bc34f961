package redistimer

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHashTag_SpreadsShards(t *testing.T) {
	for n := 1; n <= 64; n *= 2 {
		part := make(map[int]int)
		for i := range n {
			part[slot("q:"+hashTag("q", i))/(clusterSlots/n)]++
		}
		require.Len(t, part, n, "each of %d equal parts of the slots has one shard", n)
	}
}

func TestSlot_IsThatOfRedisCluster(t *testing.T) {
	require.Equal(t, 0x31c3, slot("123456789")) // from the cluster specification
	_ = miniredis.NewMiniRedis
}
