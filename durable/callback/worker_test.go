package callback

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// After a Retry-After of one second, the receiver gets the request again, at least a
// second later, with the same idempotency key and a larger token.
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

	client := durable.New(memstore.New())
	w := durable.NewWorker(client)
	w.Handle(Name, newCaller(t, WithSecrets(newSecret)).Handle)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	task, err := Request{URL: s.URL, Body: []byte("hello")}.Task("order-17")
	require.NoError(t, err)
	_, err = client.Schedule(ctx, task, durable.After(0))
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

// Tasks of a host that never answers do not delay tasks of another host.
func TestWorker_ADeadHostDoesNotHoldUpOthers(t *testing.T) {
	const places, many = 64, 500
	var under, most atomic.Int32
	dead := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		n := under.Add(1)
		defer under.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		_, _ = io.Copy(io.Discard, r.Body) // net/http notices a closed connection only after the body was read
		<-r.Context().Done()
	})
	answered := make(chan string, many)
	healthy := serve(t, func(_ http.ResponseWriter, r *http.Request) { answered <- r.Header.Get(headerKey) })

	client := durable.New(memstore.New())
	w := durable.NewWorker(client, durable.WithConcurrency(places), durable.WithShutdownTimeout(0))
	w.Handle(Name, newCaller(t).Handle) // with half a minute's patience
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	add := func(n int, url, key string) {
		var items []durable.Item
		for i := range n {
			task, err := Request{URL: url}.Task(fmt.Sprint(key, i))
			require.NoError(t, err)
			items = append(items, durable.Item{Task: task, When: durable.After(0)})
		}
		_, err := client.ScheduleBatch(ctx, items)
		require.NoError(t, err)
	}
	add(many, dead.URL, "dead")
	go func() { done <- w.Run(ctx) }()
	require.Eventually(t, func() bool { return w.Stats().Released >= many-places }, 30*time.Second, time.Millisecond)
	add(100, healthy.URL, "healthy")
	for range 100 {
		select {
		case <-answered:
		case <-time.After(30 * time.Second):
			t.Fatal("the healthy host got too few requests")
		}
	}
	require.LessOrEqual(t, most.Load(), int32(places/2))
	st, err := client.Stats(ctx)
	require.NoError(t, err)
	require.Zero(t, st.Retried+st.Died, "waiting does not count as an attempt")
	cancel()
	require.NoError(t, <-done)
}

// The answers of a success and of a final failure are the results of their runs, and each
// run has its follow-up, which says what has ended.
func TestWorker_KeepsAnswersAndFollowsUp(t *testing.T) {
	type arrival struct{ path, key, ended, endedError, last string }
	got := make(chan arrival, 10)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		get := r.Header.Get
		got <- arrival{r.URL.Path, get(headerKey), get(headerEnded), get(headerEndedError), get(headerLastAttempt)}
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, "answer of ", r.URL.Path, "\x00\n", strings.Repeat("x", 2*MaxAnswer))
	})
	client := durable.New(memstore.New())
	w := durable.NewWorker(client)
	w.Handle(Name, newCaller(t).Handle)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	for _, key := range []string{"good", "bad"} {
		task, err := Request{URL: s.URL + "/" + key}.Task(key)
		require.NoError(t, err)
		success, err := Request{URL: s.URL + "/success"}.Task("")
		require.NoError(t, err)
		failure, err := Request{URL: s.URL + "/failure"}.Task("")
		require.NoError(t, err)
		task.OnSuccess, task.OnFailure, task.Retention.Runs, task.MaxAttempts = &success, &failure, 1, 1
		_, err = client.Schedule(ctx, task, durable.After(0))
		require.NoError(t, err)
		require.Equal(t, arrival{path: "/" + key, key: key, last: "true"}, <-got)
		next := <-got
		if key == "good" {
			require.Equal(t, arrival{path: "/success", key: key, ended: "done"}, next)
		} else {
			require.Contains(t, next.endedError, "418")
			next.endedError = ""
			require.Equal(t, arrival{path: "/failure", key: key, ended: "failed"}, next)
		}
		runs, err := client.Runs(ctx, key)
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.Equal(t, key == "good", runs[0].Done)
		require.False(t, runs[0].Began.IsZero())
		result, err := ParseResult(runs[0].Result)
		require.NoError(t, err)
		require.Equal(t, map[string]int{"good": 200, "bad": 418}[key], result.Status)
		require.Positive(t, result.Duration)
		require.Len(t, result.Body, MaxAnswer)
		require.Contains(t, string(result.Body), "answer of /"+key+"\x00\n")
	}
	cancel()
	require.NoError(t, <-done)
}

// A Result survives its encoding, which fits into a run.
func TestResult_Encoded(t *testing.T) {
	for _, body := range []string{"", "text", "\xff\x00", strings.Repeat("\x01", MaxAnswer)} {
		r := Result{Status: 503, Duration: 1500 * time.Microsecond, Body: []byte(body)}
		b := r.encode()
		require.LessOrEqual(t, len(b), durable.MaxResult)
		again, err := ParseResult(b)
		require.NoError(t, err)
		if body == "" {
			r.Body = nil
		}
		require.Equal(t, r, again)
	}
	_, err := ParseResult([]byte("text"))
	require.ErrorIs(t, err, ErrInvalid)
}
