package redisstore

import (
	"errors"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

// A reply is an error reply of a server.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// Each version of Redis has its own error for a full memory. Redis 6.2 says that the
// script has failed.
func TestErrors_OfAServerThatIsFull(t *testing.T) {
	for _, text := range []string{
		"OOM command not allowed when used memory > 'maxmemory'.",
		"OOM command not allowed when used memory > 'maxmemory'. script: 0123, on @user_script:23.",
		"ERR Error running script (call to f_0123): @user_script:23: @user_script: 23: -OOM command not allowed when used memory > 'maxmemory'. ",
		"ERR Error running script (call to f_0123): @user_script:23: -OOM command not allowed when used memory > 'maxmemory'.",
	} {
		err := toStoreError(reply(text))
		require.ErrorIs(t, err, store.ErrFull, text)
		require.ErrorIs(t, err, store.ErrNotDone, text)
		require.ErrorContains(t, err, text)
		require.NotErrorIs(t, new(Store).toCheckError(reply(text)), store.ErrUnfit, text)
	}
	for _, text := range []string{
		"ERR Error running script (call to f_0123): @user_script:23: attempt to index a nil value: -OOMPH",
		"ERR unknown command: -OOM ",
	} {
		err := toStoreError(reply(text))
		require.False(t, errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrNotDone), text)
	}
}

// go-redis repeats a command after its connection has failed. If the server refuses the
// new connection, it may still have carried out the first attempt.
func TestErrors_OfAServerThatRefusesAConnection(t *testing.T) {
	for _, text := range []string{
		"NOPERM User default has no permissions to run the 'evalsha' command",
		"NOAUTH Authentication required.",
		"WRONGPASS invalid username-password pair or user is disabled.",
	} {
		err := toStoreError(reply(text))
		require.NotErrorIs(t, err, store.ErrNotDone, text)
		require.ErrorContains(t, err, text)
		require.ErrorIs(t, toStoreError(&unsentError{reply(text)}), store.ErrNotDone, text)
	}
	require.ErrorIs(t, toStoreError(&unsentError{reply("TICKLESS schema 5")}), store.ErrSchema)
}

// If no server is there when the Store sends its first command, nothing was sent.
func TestErrors_OfAServerThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	rdb := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	defer rdb.Close()
	s := New(rdb)
	defer s.Close()
	_, err = durable.New(s).Schedule(t.Context(), durable.Task{Key: "k", Handler: "h"}, durable.After(0))
	require.ErrorIs(t, err, durable.ErrNotDone)
	require.NotErrorIs(t, err, durable.ErrUnknown)
}
