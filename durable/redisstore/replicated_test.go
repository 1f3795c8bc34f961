package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A recorder keeps what is to be sent down a pipeline, and confirms that two replicas have
// it. Nothing is sent.
type recorder struct{ sent [][]any }

func (*recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *recorder) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			r.sent = append(r.sent, cmd.Args())
			if n, ok := cmd.(*redis.IntCmd); ok {
				n.SetVal(2)
			}
		}
		return nil
	}
}

// The server is told for how long to wait, behind the command, and in whole milliseconds: 0
// would be for ever.
func TestWithReplicas_SaysHowLongToWait(t *testing.T) {
	ctx := context.Background()
	for d, millis := range map[time.Duration]int64{
		time.Microsecond:        1,
		1500 * time.Microsecond: 1,
		300 * time.Millisecond:  300,
		time.Minute + 1:         60_000,
	} {
		node := redis.NewClient(&redis.Options{})
		r := new(recorder)
		node.AddHook(r)
		s := New(node, WithReplicas(3, d))
		cmds := []*redis.Cmd{redis.NewCmd(ctx, "set", "k", "v")}
		n := waitFor(ctx, node, cmds, []int{0}, s.config.wait, s.config.replicas)
		require.EqualValues(t, 2, n)
		require.Equal(t, [][]any{{"set", "k", "v"}, {"wait", 3, millis}}, r.sent)
		require.NoError(t, node.Close())
	}
}
