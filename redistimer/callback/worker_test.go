package callback

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/redistimer"
)

// The whole way: a receiver that asks for a second's patience gets the call again,
// not before, with the same key, a larger token, and a signature that is right.
func TestWorker_Calls(t *testing.T) {
	type arrival struct {
		at      time.Time
		key     string
		token   string
		attempt string
	}
	var mu sync.Mutex
	var got []arrival
	all := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := Verify(r, DefaultTolerance, newSecret)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || string(body) != "hello" {
			t.Error(err, string(body))
		}
		got = append(got, arrival{time.Now(), r.Header.Get(headerIdempotency), r.Header.Get(headerToken), r.Header.Get(headerAttempt)})
		if len(got) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		close(all)
	})

	rc := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer rc.Close()
	client := redistimer.New(rc)
	w := redistimer.NewWorker(client)
	w.Handle(Name, newCaller(t, WithSecrets(newSecret)).Handle)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	task, err := Request{URL: s.URL, Body: []byte("hello")}.Task("order-17")
	require.NoError(t, err)
	_, err = client.Schedule(ctx, task, redistimer.After(0))
	require.NoError(t, err)
	<-all
	cancel()
	require.NoError(t, <-done)

	require.Len(t, got, 2)
	require.GreaterOrEqual(t, got[1].at.Sub(got[0].at), time.Second)
	require.Equal(t, got[0].key, got[1].key)
	require.Less(t, got[0].token, got[1].token)
	require.Equal(t, "1", got[0].attempt)
	require.Equal(t, "2", got[1].attempt)
	st, err := client.Stats(context.Background())
	require.NoError(t, err)
	require.EqualValues(t, 1, st.Done)
	require.EqualValues(t, 1, st.Retried)
}
