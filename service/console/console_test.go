package console

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/service/api"
)

// The page of workers shows what runs, and a task's page why it waits or where it runs.
func TestConsole_WorkersAndReasons(t *testing.T) {
	client := durable.New(memstore.New())
	c := New(api.New(client))
	get := func(path string) string {
		t.Helper()
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		require.Equal(t, 200, w.Code, w.Body)
		return w.Body.String()
	}
	require.Contains(t, get("/workers"), "No worker has claimed a task.")
	started := make(chan struct{})
	w := durable.NewWorker(client, durable.WithName("calls"), durable.WithVersion("v7"), durable.WithConcurrency(1), durable.WithShutdownTimeout(0))
	w.Handle("http", func(ctx context.Context, d durable.Delivery) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	schedule := func(key string, when durable.When) {
		_, err := client.Schedule(ctx, durable.Task{Key: key, Handler: "http", OnSuccess: &durable.Task{Handler: "http", Body: []byte(`{"url":"http://x.example/after"}`)}}, when)
		require.NoError(t, err)
	}
	schedule("runs", durable.After(0))
	<-started
	schedule("waits", durable.After(0))
	workers, err := client.Workers(ctx)
	require.NoError(t, err)
	page := get("/workers")
	for _, want := range []string{"calls", "v7", workers[0].ID, "1 of 1", `href="/tasks/runs"`, "http: 1"} {
		require.Contains(t, page, want)
	}
	page = get("/tasks/waits")
	for _, want := range []string{"Why it waits", "All 1 places of worker " + workers[0].ID + " are taken.", `href="/tasks/runs"`, "when the worker was last heard", "POST http://x.example/after"} {
		require.Contains(t, page, want)
	}
	page = get("/tasks/runs")
	require.Contains(t, page, "Where it runs")
	require.Contains(t, page, workers[0].ID)
	cancel()
	require.NoError(t, <-ended)
}

// The page of a finished run does not say what was sent, which is not kept, and that of a task that is
// not a call has no request for curl.
func TestConsole_WithoutRequest(t *testing.T) {
	client := durable.New(memstore.New())
	c := New(api.New(client))
	get := func(path string) string {
		t.Helper()
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		require.Equal(t, 200, w.Code, w.Body)
		return w.Body.String()
	}
	schedule := func(key, body string, when durable.When) {
		_, err := client.Schedule(t.Context(), durable.Task{Key: key, Handler: "http", Body: []byte(body), Retention: durable.Retention{Runs: 1}}, when)
		require.NoError(t, err)
	}
	schedule("waits", `{"url":"http://x.example/"}`, durable.After(time.Hour))
	schedule("odd", "x", durable.After(time.Hour))
	schedule("over", `{"url":"http://x.example/"}`, durable.After(0))
	ctx, cancel := context.WithCancel(t.Context())
	w := durable.NewWorker(client)
	w.Handle("http", func(context.Context, durable.Delivery) error { return nil })
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	for st := (durable.Stats{}); st.Done == 0; {
		var err error
		st, err = client.Stats(ctx)
		require.NoError(t, err)
	}
	cancel()
	require.NoError(t, <-ended)
	for key, want := range map[string][]bool{"waits": {true, false, true}, "odd": {true, true, false}, "over": {false, false, false}} {
		page := get("/tasks/" + key)
		require.Equal(t, want, []bool{strings.Contains(page, "What is sent"), strings.Contains(page, "which is not a call"), strings.Contains(page, "As curl")}, key)
	}
}

// The pages of repeating tasks have each of them once, and at most 50 rows, among any number of
// other tasks.
func TestConsole_RepeatingPages(t *testing.T) {
	client := durable.New(memstore.New(memstore.WithShards(1)))
	c := New(api.New(client))
	want := map[string]bool{}
	var items []durable.Item
	for i := range 2500 {
		task := durable.Task{Key: fmt.Sprintf("k%04d", i), Handler: "http"}
		if i < 130 || i%100 == 7 {
			task.Every = time.Hour
			want[task.Key] = true
		}
		items = append(items, durable.Item{Task: task, When: durable.After(time.Duration(i+1) * time.Minute)})
	}
	_, err := client.ScheduleBatch(t.Context(), items)
	require.NoError(t, err)
	row, next := regexp.MustCompile(`href="/tasks/(k\d+)"`), regexp.MustCompile(`href="([^"]+)" rel="next"`)
	pages := 0
	for path := "/repeating"; path != ""; pages++ {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		require.Equal(t, 200, w.Code, w.Body)
		rows := row.FindAllStringSubmatch(w.Body.String(), -1)
		require.LessOrEqual(t, len(rows), 50)
		for _, x := range rows {
			require.True(t, want[x[1]], x[1])
			delete(want, x[1])
		}
		path = ""
		if x := next.FindStringSubmatch(w.Body.String()); x != nil {
			path = html.UnescapeString(x[1])
		}
	}
	require.Empty(t, want)
	require.GreaterOrEqual(t, pages, 4)
}

// A task that is made on the page is like one of the API: its options apply, such as the retention and
// the refusal of URLs.
func TestConsole_NewTaskIsAsByTheAPI(t *testing.T) {
	client := durable.New(memstore.New())
	keep := durable.Retention{Runs: 7, For: time.Hour}
	c := New(api.New(client, api.WithRetention(keep), api.WithCheckURL(func(u string) error {
		if strings.Contains(u, "10.0.0.1") {
			return errors.New("refused")
		}
		return nil
	})))
	post := func(task string) int {
		r := httptest.NewRequest("POST", "/new", strings.NewReader(url.Values{"task": {task}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, 422, post(`{"key":"private","url":"http://10.0.0.1/"}`))
	require.Equal(t, 422, post(`{"key":"case","url":"http://x.example/","Delay":"1h"}`))
	require.Equal(t, 303, post(`{"key":"k","url":"http://x.example/","delay":"1h"}`))
	info, err := client.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, keep, info.Task.Retention)
}
