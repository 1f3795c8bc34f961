package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Options accept the lowest and the highest allowed value, and panic outside.
func TestOptions_RefuseMisuse(t *testing.T) {
	WithName(strings.Repeat("n", 64))
	WithRecheck(10 * time.Millisecond)
	WithRecheck(time.Hour)
	WithClaimDelay(0)
	WithClaimDelay(100 * time.Millisecond)
	WithShards(1)
	WithShards(1024)
	for _, f := range []func(){
		func() { WithName("") }, func() { WithName(strings.Repeat("n", 65)) },
		func() { WithName("a{b") }, func() { WithName("a}b") }, func() { WithName("a b") }, func() { WithName("a\nb") },
		func() { WithShards(0) }, func() { WithShards(3) }, func() { WithShards(2048) },
		func() { WithRecheck(10*time.Millisecond - 1) }, func() { WithRecheck(time.Hour + 1) },
		func() { WithClaimDelay(-1) }, func() { WithClaimDelay(100*time.Millisecond + 1) },
		func() { WithLogger(nil) }, func() { WithLossHandler(nil) },
	} {
		require.Panics(t, f)
	}
}

// A wrapped client has a type that New does not know.
type wrapped struct{ redis.UniversalClient }

// New refuses other client types. With such a client Wait would not end with its context,
// and Check could not read the servers' settings.
func TestNew_RefusesOtherClients(t *testing.T) {
	one, ring := redis.NewClient(&redis.Options{}), redis.NewRing(&redis.RingOptions{})
	defer one.Close()
	defer ring.Close()
	for client, text := range map[redis.UniversalClient]string{
		wrapped{one}:         "the client must be a *redis.Client or a *redis.ClusterClient, got redisstore.wrapped",
		ring:                 "the client must be a *redis.Client or a *redis.ClusterClient, got *redis.Ring",
		nil:                  "nil client",
		(*redis.Client)(nil): "nil client",
	} {
		require.PanicsWithValue(t, "redisstore: New: "+text, func() { New(client) })
	}
}
