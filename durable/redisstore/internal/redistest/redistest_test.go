package redistest_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServer_KeepsWhatItHasOverAKill(t *testing.T) {
	s := redistest.Start(t, redistest.AOF()...)
	c := s.Client()
	defer c.Close()
	ctx := context.Background()
	require.NoError(t, c.Set(ctx, "a", "1", 0).Err())
	pid := s.Pid()
	s.Kill()
	require.False(t, s.Alive())
	require.Error(t, c.Get(ctx, "a").Err())
	s.Restart()
	require.NotEqual(t, pid, s.Pid())
	require.Equal(t, "1", c.Get(ctx, "a").Val())
}

func TestCluster_FailsOver(t *testing.T) {
	c := redistest.StartCluster(t, 3, 1, redistest.FailsSoon...)
	cl := c.Client()
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range 100 {
		require.NoError(t, cl.Set(ctx, strconv.Itoa(i), "1", 0).Err())
	}
	old := c.MasterOf(ctx, 0)
	old.Kill()
	for c.MasterOf(ctx, 0) == nil {
		time.Sleep(50 * time.Millisecond)
	}
	require.NotSame(t, old, c.MasterOf(ctx, 0))
	require.NoError(t, c.WaitHealthy(ctx))
}
