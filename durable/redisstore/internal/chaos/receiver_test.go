//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
)

// One host accepts connections but never answers. Another host answers.
func TestFault_DeadHost(t *testing.T) {
	const places, many = 64, 500
	x, _ := onServer(t)
	x.loose = true // a failed attempt does not count as a duplicate
	alive := make(chan struct{})
	note := func(r *http.Request) {
		due, _ := time.Parse(time.RFC3339Nano, r.Header.Get("Tickless-Due"))
		x.l.note(r.Header.Get("Tickless-Key"), due, 0)
	}
	dead := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // net/http notices a closed connection only after the body was read
		select {
		case <-alive:
			note(r)
		case <-r.Context().Done():
		}
	}))
	defer dead.Close()
	var mu sync.Mutex
	var late []time.Duration
	healthy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		note(r)
		due, _ := time.Parse(time.RFC3339Nano, r.Header.Get("Tickless-Due"))
		mu.Lock()
		defer mu.Unlock()
		late = append(late, time.Since(due))
	}))
	defer healthy.Close()
	calls := callback.New(callback.WithTimeout(5*time.Second), callback.WithAllowed(netip.MustParsePrefix("127.0.0.0/8")))
	defer calls.Close()
	w := x.work(x.r, calls.Handle, durable.WithConcurrency(places))
	add := func(n int, key, to string, when func(int) durable.When) {
		var items []durable.Item
		for i := range n {
			task, err := callback.Request{URL: to, Body: []byte(bodyMark)}.Task(fmt.Sprint(keyPrefix, key, i))
			require.NoError(t, err)
			task.Handler = "h"
			items = append(items, durable.Item{Task: task, When: when(i)})
			x.acked[task.Key] = true
		}
		_, err := x.c.ScheduleBatch(context.Background(), items)
		require.NoError(t, err)
	}
	add(many, "dead", dead.URL, now)
	x.eventually(30*time.Second, "the tasks of the dead host are handed back", func() bool { return w.Stats().Released >= many-places })
	add(many, "healthy", healthy.URL, soon(3*time.Second))
	x.eventually(60*time.Second, "the healthy host gets all its tasks", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(late) >= many // a request that was answered too late is repeated
	})
	require.Zero(t, x.l.count(keyPrefix+"dead0"))
	close(alive)
	st := x.done(2 * time.Minute)
	slices.Sort(late)
	x.note("%d tasks to a host that does not answer, a worker with %d places; %d tasks to another host were %s / %s late (p50 / max); the first %d came when the host was well again",
		many, places, many, short(late[len(late)/2]), short(late[len(late)-1]), many)
	require.Empty(t, x.lost)
	require.Zero(t, st.Dead)
}

// Several receivers misbehave at the first attempt of each task. Another host has very
// many due tasks.
func TestFault_BadReceivers(t *testing.T) {
	const limit = 16
	each, many := 10, 5000
	if os.Getenv("TICKLESS_CHAOS") == "long" {
		each, many = 100, 100_000
	}
	x, _ := onServer(t)
	x.loose = true // a failed attempt does not count as a duplicate
	var faults [4]atomic.Int64
	var under, most, early atomic.Int64
	var tried sync.Map
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, _ := url.PathUnescape(r.Header.Get("Tickless-Key"))
		last, again := tried.Swap(key, time.Now())
		switch path := r.URL.Path; {
		case path == "/redirect":
			faults[3].Add(1)
			http.Redirect(w, r, "/redirect", http.StatusFound)
			return
		case again:
			if path == "/429" && time.Since(last.(time.Time)) < time.Second {
				early.Add(1)
			}
			due, _ := time.Parse(time.RFC3339Nano, r.Header.Get("Tickless-Due"))
			x.l.note(key, due, 0)
			return
		case path == "/429":
			faults[0].Add(1)
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		case path == "/slow":
			faults[1].Add(1)
			_, _ = io.Copy(io.Discard, r.Body) // net/http notices a closed connection only after the body was read
			<-r.Context().Done()
		case path == "/reset":
			faults[2].Add(1)
			panic(http.ErrAbortHandler)
		}
	}))
	defer bad.Close()
	good := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n := under.Add(1)
		defer under.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		due, _ := time.Parse(time.RFC3339Nano, r.Header.Get("Tickless-Due"))
		x.l.note(r.Header.Get("Tickless-Key"), due, 0)
	}))
	defer good.Close()

	// Only the receiver that never answers gets a short timeout, because a slow machine
	// is not a fault.
	local := callback.WithAllowed(netip.MustParsePrefix("127.0.0.0/8"))
	calls := callback.New(callback.WithPerHost(limit), callback.WithTimeout(time.Minute), local)
	defer calls.Close()
	hasty := callback.New(callback.WithPerHost(limit), callback.WithTimeout(300*time.Millisecond), local)
	defer hasty.Close()
	var failures, backs atomic.Int64
	w := x.work(x.r, func(ctx context.Context, d durable.Delivery) error {
		to := calls
		if strings.Contains(d.Key, "/slow-") {
			to = hasty
		}
		err := to.Handle(ctx, d)
		var never *durable.NoRetryError
		var back *durable.HandBackError
		if errors.As(err, &back) {
			backs.Add(1)
		} else if err != nil && !errors.As(err, &never) {
			failures.Add(1)
		}
		return err
	}, durable.WithConcurrency(512))
	var items []durable.Item
	add := func(key, to string) {
		task, err := callback.Request{URL: to, Body: []byte(bodyMark)}.Task(key)
		require.NoError(t, err)
		task.Handler = "h"
		items = append(items, durable.Item{Task: task, When: durable.After(time.Second)})
	}
	for i := range each {
		for _, path := range []string{"/429", "/slow", "/reset", "/redirect"} {
			add(fmt.Sprint(keyPrefix, "bad", path, "-", i), bad.URL+path)
		}
	}
	for i := range many {
		add(fmt.Sprint(keyPrefix, i), good.URL)
	}
	_, err := x.c.ScheduleBatch(context.Background(), items)
	require.NoError(t, err)
	for _, it := range items {
		x.acked[it.Task.Key] = true
	}
	x.drain(3 * time.Minute)
	for i := range faults {
		require.GreaterOrEqual(t, faults[i].Load(), int64(each))
	}
	require.EqualValues(t, each, faults[3].Load(), "no redirect is followed")
	require.Zero(t, early.Load(), "Retry-After is honoured")
	require.LessOrEqual(t, most.Load(), int64(limit))
	x.note("%d receivers each answer 429 with Retry-After, too slowly, with a reset, with a redirect to itself; %d due to one host at one moment, %d under way there at most; %d attempts failed, %d were handed back",
		each, many, most.Load(), failures.Load(), backs.Load())
	st := x.done(time.Second)
	require.EqualValues(t, each, st.Dead, "the redirects")
	require.Empty(t, x.lost)
	require.Zero(t, w.Stats().Lost)
}
