package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// A caller calls an API, and notes which operation answered which status.
type caller struct {
	*testing.T
	api  *API
	seen map[string]map[int]bool // statuses by "METHOD pattern"
}

func (c *caller) call(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	c.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	_, pattern := c.api.mux.Handler(r)
	w := httptest.NewRecorder()
	c.api.ServeHTTP(w, r)
	if c.seen[pattern] == nil {
		c.seen[pattern] = map[int]bool{}
	}
	c.seen[pattern][w.Code] = true
	if w.Code >= 400 {
		var p Problem
		require.NoError(c, json.Unmarshal(w.Body.Bytes(), &p), w.Body)
		require.Equal(c, w.Code, p.Status)
		require.Equal(c, "application/problem+json", w.Header().Get("Content-Type"))
	}
	return w
}

func (c *caller) want(status int, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	c.Helper()
	w := c.call(method, path, body, headers...)
	require.Equal(c, status, w.Code, "%s %s: %s", method, path, w.Body)
	return w
}

// A brokenStore fails every call.
type brokenStore struct{ *memstore.Store }

func (brokenStore) Change(context.Context, int, store.Stamp, store.Command) ([]store.Outcome, error) {
	return nil, store.ErrBusy
}
func (brokenStore) Get(context.Context, int, string) (store.Entry, error) {
	return store.Entry{}, store.ErrBusy
}
func (brokenStore) Workers(context.Context, int) ([]store.Worker, error) {
	return nil, store.ErrBusy
}
func (brokenStore) Stats(context.Context, int) (store.Stats, error) {
	return store.Stats{}, store.ErrBusy
}
func (brokenStore) List(context.Context, int, store.Filter, store.Cursor, int) (store.Page, error) {
	return store.Page{}, store.ErrBusy
}

const future = `{"url":"http://x.example/","delay":"1h"}`

// Every operation of openapi.json exists and gives every answer that is documented, and no
// other.
func TestAPI_IsAsDocumented(t *testing.T) {
	client := durable.New(memstore.New())
	c := &caller{T: t, api: New(client), seen: map[string]map[int]bool{}}
	large := `{"url":"` + strings.Repeat("x", maxTask) + `"}`
	errors := func(method, path, good string) {
		c.want(415, method, path, good, "Content-Type", "text/plain")
		c.want(400, method, path, `{"`)
		c.want(413, method, path, large)
		c.want(422, method, path, `{"what":1}`)
	}

	errors("PUT", "/v1/tasks/k", future)
	c.want(201, "PUT", "/v1/tasks/k", future)
	c.want(200, "PUT", "/v1/tasks/k", future)
	c.want(412, "PUT", "/v1/tasks/k", future, "If-None-Match", "*")
	c.want(412, "PUT", "/v1/tasks/k", future, "If-Match", `"other"`)
	c.want(412, "PUT", "/v1/tasks/none", future, "If-Match", `"other"`)
	tag := c.want(200, "GET", "/v1/tasks/k", "").Header().Get("ETag")
	c.want(200, "PUT", "/v1/tasks/k", future, "If-Match", tag)
	c.want(404, "GET", "/v1/tasks/none", "")

	errors("PATCH", "/v1/tasks/k", `{}`)
	c.want(200, "PATCH", "/v1/tasks/k", `{"method":"PUT"}`, "Content-Type", "application/merge-patch+json")
	c.want(412, "PATCH", "/v1/tasks/k", `{"method":"PUT"}`, "If-Match", tag)
	c.want(404, "PATCH", "/v1/tasks/none", `{}`)
	c.want(200, "POST", "/v1/tasks/k/run", "")
	c.want(404, "POST", "/v1/tasks/none/run", "")

	// One task runs and is stopped, one dies.
	stop := make(chan struct{})
	started := make(chan struct{})
	w := durable.NewWorker(client)
	w.Handle("http", func(ctx context.Context, d durable.Delivery) error {
		if d.Key == "dies" {
			return durable.NoRetry(context.Canceled)
		}
		if d.Key == "stops" {
			close(started)
			<-ctx.Done()
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = w.Run(ctx); close(stop) }()
	c.want(201, "PUT", "/v1/tasks/stops", `{"url":"http://x.example/"}`)
	<-started
	// A change of a running task builds on the one before.
	c.want(409, "PATCH", "/v1/tasks/stops", `{"max_attempts":3}`)
	c.want(200, "PATCH", "/v1/tasks/stops", `{"every":"2h","body":"x"}`)
	c.want(200, "PATCH", "/v1/tasks/stops", `{"headers":{"X-A":"1"}}`)
	info, err := c.api.client.Get(ctx, "stops")
	require.NoError(t, err)
	next := TaskOf(&durable.Info{Task: *info.NextTask})
	require.Equal(t, []any{"x", Duration(2 * time.Hour), map[string]string{"X-A": "1"}}, []any{next.Body, *next.Every, next.Headers})
	c.want(202, "DELETE", "/v1/tasks/stops", "")
	c.want(201, "PUT", "/v1/tasks/dies", `{"url":"http://x.example/"}`)
	for c.call("GET", "/v1/tasks/dies/runs", "").Body.String() == `{"runs":[]}`+"\n" {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-stop
	c.want(200, "GET", "/v1/tasks/dies/runs", "")
	c.want(404, "GET", "/v1/tasks/none/runs", "")
	c.want(200, "GET", "/v1/tasks/dies/explain", "")
	c.want(404, "GET", "/v1/tasks/none/explain", "")
	c.want(200, "GET", "/v1/workers", "")
	c.want(409, "PATCH", "/v1/tasks/dies", `{}`)
	c.want(409, "POST", "/v1/tasks/dies/run", "")
	c.want(200, "POST", "/v1/tasks/dies/requeue", "")
	c.want(409, "POST", "/v1/tasks/dies/requeue", "")
	c.want(404, "POST", "/v1/tasks/none/requeue", "")
	c.want(412, "DELETE", "/v1/tasks/dies", "", "If-Match", `"other"`)
	c.want(204, "DELETE", "/v1/tasks/dies", "")
	c.want(404, "DELETE", "/v1/tasks/dies2", "")

	c.want(415, "POST", "/v1/tasks", future, "Content-Type", "text/plain")
	c.want(400, "POST", "/v1/tasks", `[`)
	c.want(413, "POST", "/v1/tasks", large)
	c.want(422, "POST", "/v1/tasks", `{"key":"mine"}`)
	c.want(422, "POST", "/v1/tasks", `{"tasks":[]}`)
	c.want(201, "POST", "/v1/tasks", future)
	c.want(200, "POST", "/v1/tasks", `{"tasks":[`+future+`]}`)
	c.want(201, "POST", "/v1/tasks", future, "Idempotency-Key", "a")
	c.want(200, "POST", "/v1/tasks", future, "Idempotency-Key", "a")
	c.want(422, "POST", "/v1/tasks", `{"url":"http://y.example/","delay":"1h"}`, "Idempotency-Key", "a")
	c.want(400, "POST", "/v1/tasks", future, "Idempotency-Key", strings.Repeat("a", 300))
	for _, list := range []string{"/v1/tasks", "/v1/runs"} {
		c.want(200, "GET", list, "")
		c.want(200, "GET", list+"?prefix=k&limit=1", "")
		c.want(400, "GET", list+"?what=1", "")
		c.want(400, "GET", list+"?limit=0", "")
		c.want(400, "GET", list+"?prefix=a;b", "")
		c.want(400, "GET", list+"?prefix=100%", "")
	}
	c.want(422, "GET", "/v1/tasks?state=odd", "")
	c.want(422, "GET", "/v1/tasks?cursor=%21", "")
	c.want(422, "GET", "/v1/runs?cursor=%21", "")
	for _, action := range []string{"cancel", "requeue", "purge"} {
		errors("POST", "/v1/tasks/"+action, `{"prefix":"z","limit":1}`)
		c.want(200, "POST", "/v1/tasks/"+action, `{"prefix":"z","limit":1}`)
		c.want(422, "POST", "/v1/tasks/"+action, `{"limit":1}`)
	}
	c.want(200, "GET", "/v1/stats", "")
	c.want(200, "GET", "/v1/upcoming?for=2h", "")
	c.want(400, "GET", "/v1/upcoming?for=-1h", "")
	c.want(200, "GET", "/v1/queues", "")
	c.want(200, "GET", "/v1/queues/http", "")
	c.want(404, "GET", "/v1/queues/none", "")
	errors("PUT", "/v1/queues/http", `{}`)
	c.want(404, "PUT", "/v1/queues/none", `{}`)
	c.want(200, "PUT", "/v1/queues/http", `{"concurrency":3,"paused":true,"note":"why"}`)
	c.want(422, "PUT", "/v1/queues/http", `{"note":"why"}`)
	c.want(200, "PUT", "/v1/queues/http", `{"by_group":{"concurrency":2,"rate":0.5}}`)
	require.Contains(t, c.want(200, "GET", "/v1/queues/http", "").Body.String(), `"by_group":{"concurrency":2,"rate":0.5}`)
	c.want(422, "PUT", "/v1/queues/http", `{"by_group":{"concurrency":-1}}`)
	c.want(201, "PUT", "/v1/tasks/grouped", `{"url":"http://x.example","delay":"1h","group":"tenant 7"}`)
	require.Contains(t, c.want(200, "GET", "/v1/tasks?group=tenant+7", "").Body.String(), `"group":"tenant 7"`)
	require.NotContains(t, c.want(200, "GET", "/v1/tasks?group=other", "").Body.String(), `"group"`)
	c.want(200, "DELETE", "/v1/queues/http", "")
	c.want(404, "DELETE", "/v1/queues/none", "")
	c.want(200, "GET", "/openapi.json", "")

	// Each operation says 503 if the store does not answer.
	broken := &caller{T: t, api: New(durable.New(brokenStore{memstore.New()})), seen: c.seen}
	for _, x := range [][3]string{{"PUT", "/v1/tasks/k", future}, {"GET", "/v1/tasks/k"}, {"PATCH", "/v1/tasks/k", "{}"}, {"DELETE", "/v1/tasks/k"},
		{"POST", "/v1/tasks/k/run"}, {"POST", "/v1/tasks/k/requeue"}, {"GET", "/v1/tasks/k/runs"}, {"GET", "/v1/tasks/k/explain"}, {"GET", "/v1/workers"}, {"GET", "/v1/tasks"}, {"POST", "/v1/tasks", future},
		{"POST", "/v1/tasks/cancel", `{"prefix":"z","limit":1}`}, {"POST", "/v1/tasks/requeue", `{"prefix":"z","limit":1}`}, {"POST", "/v1/tasks/purge", `{"prefix":"z","limit":1}`},
		{"GET", "/v1/runs"}, {"GET", "/v1/stats"}, {"GET", "/v1/upcoming"}, {"GET", "/v1/queues"}, {"GET", "/v1/queues/http"}, {"PUT", "/v1/queues/http", "{}"}, {"DELETE", "/v1/queues/http"}} {
		require.NotEmpty(t, broken.want(503, x[0], x[1], x[2]).Header().Get("Retry-After"))
	}

	var doc struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	require.NoError(t, json.Unmarshal(openAPI, &doc))
	documented := map[string]map[int]bool{"GET /openapi.json": {200: true}}
	for path, operations := range doc.Paths {
		for method, o := range operations {
			statuses := map[int]bool{}
			for s := range o.Responses {
				var n int
				require.NoError(t, json.Unmarshal([]byte(s), &n))
				statuses[n] = true
			}
			documented[strings.ToUpper(method)+" "+path] = statuses
		}
	}
	require.Equal(t, documented, c.seen)
}

// The documented fields of a task are those that a Task has.
func TestAPI_FieldsAreAsDocumented(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	require.NoError(t, json.Unmarshal(openAPI, &doc))
	want := slices.Sorted(maps.Keys(fieldsOf(reflect.TypeFor[outcomeAnswer]())))
	require.Equal(t, want, slices.Sorted(maps.Keys(doc.Components.Schemas["Task"].Properties)))
}

// A dead letter and a run that is kept say when they ended, in each answer that has them.
func TestAPI_Ended(t *testing.T) {
	client := durable.New(memstore.New())
	c := &caller{T: t, api: New(client), seen: map[string]map[int]bool{}}
	w := durable.NewWorker(client)
	w.Handle("http", func(_ context.Context, d durable.Delivery) error {
		if d.Key == "dies" {
			return durable.NoRetry(context.Canceled)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	for _, key := range []string{"dies", "done"} {
		c.want(201, "PUT", "/v1/tasks/"+key, `{"url":"http://x.example/"}`)
		var runs []durable.Run
		for len(runs) == 0 {
			var err error
			runs, err = client.Runs(ctx, key)
			require.NoError(t, err)
		}
		var got Task
		require.NoError(t, json.Unmarshal(c.want(200, "GET", "/v1/tasks/"+key, "").Body.Bytes(), &got))
		require.True(t, got.Ended.Equal(runs[0].Ended), "%v %v", got.Ended, runs[0].Ended)
		require.Zero(t, got.Request().Ended)
		var list taskPage
		require.NoError(t, json.Unmarshal(c.want(200, "GET", "/v1/tasks?prefix="+key+"&state="+got.State, "").Body.Bytes(), &list))
		require.True(t, list.Tasks[0].Ended.Equal(got.Ended))
	}
	cancel()
	require.NoError(t, <-ended)
	require.NotContains(t, c.want(201, "PUT", "/v1/tasks/k", future).Body.String(), "ended")
	c.want(422, "PUT", "/v1/tasks/k", `{"url":"http://x.example/","ended":"2027-01-02T15:04:05Z"}`)
}

// A task at the last time that a store has says so, and keeps it; one that would come later still is
// refused, and not taken for a paused one.
func TestAPI_FarTimes(t *testing.T) {
	c := &caller{T: t, api: New(durable.New(memstore.New())), seen: map[string]map[int]bool{}}
	c.want(201, "PUT", "/v1/tasks/k", `{"url":"http://x.example/","at":"2199-12-31T23:59:59.999999Z"}`)
	for _, patch := range []string{`{"method":"PUT"}`, `{"paused":true}`, `{"paused":false}`} {
		var got Task
		require.NoError(t, json.Unmarshal(c.want(200, "PATCH", "/v1/tasks/k", patch).Body.Bytes(), &got))
		if !got.Paused {
			require.True(t, got.Due.Equal(store.Farthest.Std()), "%s: %v", patch, got.Due)
		}
	}
	for _, times := range []string{`"at":"2200-01-01T00:00:00Z"`, `"delay":"2562047h"`, `"every":"2562047h"`, `"cron":"@every 2562047h"`} {
		c.want(422, "PUT", "/v1/tasks/far", `{"url":"http://x.example/",`+times+`}`)
	}
	c.want(404, "GET", "/v1/tasks/far", "")
}

// A path with another method says which methods it has.
func TestAPI_Methods(t *testing.T) {
	c := &caller{T: t, api: New(durable.New(memstore.New())), seen: map[string]map[int]bool{}}
	w := c.want(405, "POST", "/v1/stats", "")
	require.Equal(t, "GET", w.Header().Get("Allow"))
	c.want(404, "GET", "/v1/nothing", "")
}

// A body that is nested too deeply, or is not UTF-8, is refused at once.
// A getlessStore fails each Get.
type getlessStore struct{ *memstore.Store }

func (getlessStore) Get(context.Context, int, string) (store.Entry, error) {
	return store.Entry{}, store.ErrBusy
}

// The answers to PUT and POST have the task as it was stored, without another read.
func TestAPI_AnswersWithoutReading(t *testing.T) {
	st := memstore.New()
	client := durable.New(st)
	c := &caller{t, New(durable.New(getlessStore{st})), map[string]map[int]bool{}}
	for _, x := range []struct {
		status                    int
		method, path, body, state string
	}{
		{201, "PUT", "/v1/tasks/k", future, "pending"},
		{200, "PUT", "/v1/tasks/k", `{"url":"http://user:hush@x.example/","at":"2030-01-02T03:04:05Z","paused":true}`, "paused"},
		{201, "PUT", "/v1/tasks/daily", `{"url":"http://x.example/","cron":"0 9 * * *","zone":"Europe/Berlin","keep":{"runs":3}}`, "pending"},
		{201, "POST", "/v1/tasks", `{"url":"http://x.example/","body_base64":"/w==","backoff":{"min":"1s","max":"1m0s"}}`, "pending"},
	} {
		w := c.want(x.status, x.method, x.path, x.body)
		var got outcomeAnswer
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		require.Equal(t, x.state, got.State)
		info, err := client.Get(t.Context(), got.Key)
		require.NoError(t, err)
		want, err := json.Marshal(outcomeAnswer{Shown(&info), got.Outcome})
		require.NoError(t, err)
		require.JSONEq(t, string(want), w.Body.String())
		require.Equal(t, fmt.Sprintf("%q", got.Version), w.Header().Get("ETag"))
		require.Equal(t, "/v1/tasks/"+got.Key, w.Header().Get("Location"))
	}
}

// A repeated POST returns the first one's task, also if somebody has changed that meanwhile.
func TestAPI_RepeatedPostOfAChangedTask(t *testing.T) {
	client := durable.New(memstore.New())
	a, hour := New(client), Duration(time.Hour)
	c := &caller{T: t, api: a, seen: map[string]map[int]bool{}}
	const task = `{"url":"http://x.example/","delay":"1h"}`
	var got outcomeAnswer
	for i := range 2 {
		w := c.want(201-i, "POST", "/v1/tasks", task, "Idempotency-Key", "a")
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		c.want(200, "PATCH", "/v1/tasks/"+got.Key, `{"body":"other"}`)
	}
	info, err := client.Get(t.Context(), got.Key)
	require.NoError(t, err)
	_, err = a.Replace(t.Context(), got.Key, &Task{URL: "http://y.example/", Delay: &hour}, versionOf(&info))
	require.NoError(t, err)
	w := c.want(200, "POST", "/v1/tasks", task, "Idempotency-Key", "a")
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	require.Equal(t, "http://y.example/", got.URL)
}

func TestAPI_OddBodies(t *testing.T) {
	c := &caller{T: t, api: New(durable.New(memstore.New())), seen: map[string]map[int]bool{}}
	c.want(422, "PUT", "/v1/tasks/k", strings.Repeat(`{"on_success":`, 5000)+`{}`+strings.Repeat(`}`, 5000))
	c.want(422, "PATCH", "/v1/tasks/k", strings.Repeat(`{"on_success":`, 5000)+`{}`+strings.Repeat(`}`, 5000))
	c.want(400, "PUT", "/v1/tasks/k", "{\"url\":\"http://x.example/\",\"body\":\"\xff\"}")
	c.want(201, "PUT", "/v1/tasks/k", `{"url":"http://x.example/","delay":"1h","body":"[[[[[[[[[[[[[[[[[[\"{"}`)
	c.want(422, "POST", "/v1/tasks", `{"tasks":[{"url":"http://x.example/"}]}`, "Idempotency-Key", "a")
}

// Answers show dots in place of what may be a secret, and a change keeps the secret.
func TestAPI_SecretHeaders(t *testing.T) {
	client := durable.New(memstore.New())
	c := &caller{T: t, api: New(client), seen: map[string]map[int]bool{}}
	c.want(201, "PUT", "/v1/tasks/k", `{"url":"http://x.example/","delay":"1h","headers":{"Authorization":"Bearer 1234","X-Api-Key":"hush-5678-hush","Accept":"*/*"}}`)
	body := c.want(200, "GET", "/v1/tasks/k", "").Body.String()
	require.NotContains(t, body, "1234")
	require.NotContains(t, body, "hush-5678-hush")
	require.Contains(t, body, "*/*")
	c.want(422, "PUT", "/v1/tasks/k", `{"url":"http://x.example/","headers":{"Authorization":"••••"}}`)
	c.want(200, "PATCH", "/v1/tasks/k", `{"headers":{"Authorization":"••••","Accept":null}}`)
	info, err := client.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Authorization": "Bearer 1234", "X-Api-Key": "hush-5678-hush"}, TaskOf(&info).Headers)
}

// Dots stand for the secrets of a URL too, in answers and lists. A change that has the dots keeps
// the secrets, and nothing else writes the dots.
func TestAPI_SecretsInURLs(t *testing.T) {
	client := durable.New(memstore.New())
	c := &caller{T: t, api: New(client), seen: map[string]map[int]bool{}}
	const secret, shown = "http://me:p4ss@x.example/a?user=7&access_token=h1&X-Amz-Signature=h2&b=#f", "http://••••@x.example/a?user=7&access_token=••••&X-Amz-Signature=••••&b=#f"
	task := func(url string) string {
		return fmt.Sprintf(`{"url":%q,"delay":"1h","on_success":{"url":%q}}`, url, url)
	}
	c.want(201, "PUT", "/v1/tasks/k", task(secret))
	for _, path := range []string{"/v1/tasks/k", "/v1/tasks"} {
		text := c.want(200, "GET", path, "").Body.String()
		for _, part := range []string{"p4ss", "h1", "h2"} {
			require.NotContains(t, text, part)
		}
		require.Equal(t, 2, strings.Count(strings.ReplaceAll(text, `\u0026`, "&"), shown))
	}
	stored := func() []string {
		info, err := client.Get(t.Context(), "k")
		require.NoError(t, err)
		x := TaskOf(&info)
		return []string{x.URL, x.Method, x.OnSuccess.URL}
	}
	c.want(200, "PATCH", "/v1/tasks/k", `{"method":"PUT"}`)
	c.want(200, "PATCH", "/v1/tasks/k", fmt.Sprintf(`{"url":%q,"on_success":{"url":%q}}`, shown, shown))
	require.Equal(t, []string{secret, "PUT", secret}, stored())
	for _, dots := range []string{shown, "http://x.example/?token=••••", "http://x.example/?token=%E2%80%A2%E2%80%A2%E2%80%A2%E2%80%A2"} {
		require.Contains(t, c.want(422, "PUT", "/v1/tasks/other", task(dots)).Body.String(), `"pointer":"/on_success/url"`)
	}
	c.want(422, "PATCH", "/v1/tasks/k", `{"url":"http://y.example/?token=••••"}`)
	require.Equal(t, []string{secret, "PUT", secret}, stored())
}

// The errors of a batch name the task, and one that cannot be read does not refuse the others.
func TestAPI_BatchPointers(t *testing.T) {
	c := &caller{T: t, api: New(durable.New(memstore.New())), seen: map[string]map[int]bool{}}
	var x struct{ Tasks []batchResult }
	body := c.want(200, "POST", "/v1/tasks", `{"tasks":[`+future+`,{"url":"http://x.example/","cron":"61 * * * *"},{"what":1},5,{"url":"http://x.example/","delay":"5x"},{"url":"http://x.example/","at":"noon"},{"url":"http://x.example/","on_success":{}},`+future+`]}`).Body.Bytes()
	require.NoError(t, json.Unmarshal(body, &x))
	for i, want := range []string{"", "/tasks/1/cron", "/tasks/2/what", "/tasks/3", "/tasks/4/delay", "/tasks/5/at", "/tasks/6/on_success/url", ""} {
		if want == "" {
			require.Equal(t, "created", x.Tasks[i].Outcome)
			continue
		}
		require.NotNil(t, x.Tasks[i].Error, i)
		require.Equal(t, want, x.Tasks[i].Error.Errors[0].Pointer)
	}
	require.Contains(t, c.want(422, "POST", "/v1/tasks", `{"tasks":[`+future+`],"more":1}`).Body.String(), `"pointer":"/more"`)
	require.Contains(t, c.want(422, "POST", "/v1/tasks/cancel", `{"state":5,"limit":1}`).Body.String(), `"pointer":"/state"`)
	require.Contains(t, c.want(422, "POST", "/v1/tasks/cancel", `{"due_before":"noon","limit":1}`).Body.String(), `"pointer":"/due_before"`)
}

// Finished runs are listed under their task's key, also those of its follow-ups, and what is listed
// can be got. They do not get in the way of a bulk command, and a state means what it says there.
func TestAPI_ListedKeys(t *testing.T) {
	client := durable.New(memstore.New())
	c := &caller{T: t, api: New(client), seen: map[string]map[int]bool{}}
	w := durable.NewWorker(client)
	w.Handle("http", func(context.Context, durable.Delivery) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	c.want(201, "PUT", "/v1/tasks/first", `{"url":"http://x.example/","on_success":{"url":"http://x.example/","queue":"http"}}`)
	var done struct{ Tasks []Task }
	for len(done.Tasks) < 1 {
		require.NoError(t, json.Unmarshal(c.want(200, "GET", "/v1/tasks?state=done", "").Body.Bytes(), &done))
	}
	for {
		if st, err := client.Stats(ctx); err == nil && st.Done == 2 {
			break
		}
	}
	cancel()
	require.NoError(t, <-ended)
	c.want(201, "PUT", "/v1/tasks/follows", `{"url":"http://x.example/","delay":"1h"}`)
	c.want(201, "PUT", "/v1/tasks/fpaused", `{"url":"http://x.example/","paused":true}`)
	for _, list := range []string{"", "?state=done", "?prefix=f", "?state=paused"} {
		var x struct{ Tasks []Task }
		require.NoError(t, json.Unmarshal(c.want(200, "GET", "/v1/tasks"+list, "").Body.Bytes(), &x))
		require.NotEmpty(t, x.Tasks)
		for _, task := range x.Tasks {
			var got Task
			require.NoError(t, json.Unmarshal(c.want(200, "GET", "/v1/tasks/"+url.PathEscape(task.Key), "").Body.Bytes(), &got))
			require.Equal(t, []string{task.Key, task.State}, []string{got.Key, got.State}, list)
		}
	}
	c.want(200, "GET", "/v1/tasks/first%00r000000000000", "") // the id of a run
	require.JSONEq(t, `{"count":1}`, c.want(200, "POST", "/v1/tasks/cancel", `{"state":"paused","limit":10}`).Body.String())
	require.JSONEq(t, `{"count":1}`, c.want(200, "POST", "/v1/tasks/cancel", `{"prefix":"f","limit":10}`).Body.String())
	require.JSONEq(t, `{"count":1}`, c.want(200, "POST", "/v1/tasks/purge", `{"state":"done","limit":10}`).Body.String())
	require.NotContains(t, c.want(200, "GET", "/v1/runs", "").Body.String(), "first")
	for _, key := range []string{".", ".."} {
		require.Contains(t, c.want(200, "POST", "/v1/tasks", `{"tasks":[{"key":"`+key+`","url":"http://x.example/"}]}`).Body.String(), "/tasks/0/key")
	}
}

// A slowStore takes a millisecond for a page.
type slowStore struct{ *memstore.Store }

func (s slowStore) List(ctx context.Context, shard int, f store.Filter, after store.Cursor, limit int) (store.Page, error) {
	time.Sleep(time.Millisecond)
	return s.Store.List(ctx, shard, f, after, limit)
}

// A dead letter that is requeued and dies again meanwhile is not requeued again.
func TestAPI_RequeueEndsWhileTasksDie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := durable.New(slowStore{memstore.New()}, durable.WithLogger(slog.New(slog.DiscardHandler)))
		c := &caller{T: t, api: New(client), seen: map[string]map[int]bool{}}
		w := durable.NewWorker(client)
		w.Handle("http", func(context.Context, durable.Delivery) error { return durable.NoRetry(context.Canceled) })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		for i := range 1500 {
			_, err := client.Schedule(ctx, durable.Task{Key: fmt.Sprint(i), Handler: "http"}, durable.After(0))
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		require.JSONEq(t, `{"count":1500}`, c.want(200, "POST", "/v1/tasks/requeue", `{"state":"dead","limit":10000}`).Body.String())
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestBackoff(t *testing.T) {
	for attempt, want := range []time.Duration{0, 1, 2, 4, 8, 10, 10} {
		if attempt == 0 {
			continue
		}
		d := backoff(time.Second, 10*time.Second, attempt)
		require.True(t, d >= want*time.Second/2 && d <= want*time.Second, "attempt %d: %v", attempt, d)
	}
	require.LessOrEqual(t, backoff(time.Second, time.Hour, 1_000_000), time.Hour)
}

// The names of headers and queues are checked.
func TestWithQueues(t *testing.T) {
	a := New(durable.New(memstore.New()), WithQueues("mail", "reports"))
	c := &caller{T: t, api: a, seen: map[string]map[int]bool{}}
	c.want(201, "PUT", "/v1/tasks/k", future)
	require.Contains(t, c.want(200, "GET", "/v1/tasks/k", "").Body.String(), `"queue":"mail"`)
	require.Contains(t, c.want(422, "PUT", "/v1/tasks/k", `{"url":"http://x.example/","queue":"http"}`).Body.String(), "mail, reports")
	require.Panics(t, func() { New(durable.New(memstore.New()), WithQueues()) })
	queues, err := a.Queues(t.Context())
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(queues, func(q Queue) bool { return q.Queue == "reports" }))
}

// A queue that the service does not name, or no longer, can be resumed and its limits removed. It
// gets no tasks.
func TestAPI_QueuesOfOthers(t *testing.T) {
	client := durable.New(memstore.New())
	c := &caller{T: t, api: New(client), seen: map[string]map[int]bool{}}
	require.NoError(t, client.PauseHandler(t.Context(), "a/b", "why"))
	require.NoError(t, client.SetLimit(t.Context(), "b", durable.Limit{Rate: 2}))
	require.NoError(t, client.PauseHandler(t.Context(), "b", ""))
	require.NoError(t, client.SetLimit(t.Context(), "http", durable.Limit{Rate: 3}))
	names := func() (names []string) {
		var x struct{ Queues []Queue }
		require.NoError(t, json.Unmarshal(c.want(200, "GET", "/v1/queues", "").Body.Bytes(), &x))
		for _, q := range x.Queues {
			names = append(names, q.Queue)
		}
		return names
	}
	require.Equal(t, []string{"http", "a/b", "b"}, names())
	require.Contains(t, c.want(200, "GET", "/v1/queues/a%2Fb", "").Body.String(), `"note":"why"`)
	c.want(422, "PUT", "/v1/tasks/k", `{"url":"http://x.example/","queue":"b"}`)
	c.want(200, "PUT", "/v1/queues/b", `{"rate":2}`)
	require.Equal(t, []string{"http", "a/b", "b"}, names())
	c.want(200, "DELETE", "/v1/queues/b", "")
	c.want(200, "PUT", "/v1/queues/a%2Fb", `{}`)
	require.Equal(t, []string{"http"}, names())
	c.want(404, "PUT", "/v1/queues/b", `{"paused":true}`)
	paused, err := client.PausedHandlers(t.Context())
	require.NoError(t, err)
	require.Empty(t, paused)
}

// A follow-up is a task in the form of the API, without a key and times. Its secrets are
// dots, which a change keeps.
func TestAPI_FollowUps(t *testing.T) {
	client := durable.New(memstore.New())
	c := &caller{T: t, api: New(client), seen: map[string]map[int]bool{}}
	c.want(201, "PUT", "/v1/tasks/k", `{"url":"http://x.example/","delay":"1h","on_success":{"url":"http://y.example/","headers":{"Authorization":"Bearer 1234"},"on_failure":{"url":"http://z.example/"}}}`)
	body := c.want(200, "GET", "/v1/tasks/k", "").Body.String()
	require.Contains(t, body, `"on_success":{"url":"http://y.example/","method":"POST","headers":{"Authorization":"••••"},"queue":"http","on_failure":{"url":"http://z.example/"`)
	c.want(200, "PATCH", "/v1/tasks/k", `{"on_success":{"method":"PUT"},"on_failure":{"url":"http://w.example/"}}`)
	info, err := client.Get(t.Context(), "k")
	require.NoError(t, err)
	x := TaskOf(&info)
	require.Equal(t, "PUT", x.OnSuccess.Method)
	require.Equal(t, "Bearer 1234", x.OnSuccess.Headers["Authorization"])
	require.Equal(t, "http://w.example/", x.OnFailure.URL)
	c.want(200, "PATCH", "/v1/tasks/k", `{"on_success":null}`)
	require.NotContains(t, c.want(200, "GET", "/v1/tasks/k", "").Body.String(), "on_success")
	for _, f := range []string{`{}`, `{"url":"ftp://y.example/"}`, `{"url":"http://y.example/","key":"k"}`, `{"url":"http://y.example/","delay":"1s"}`, `{"url":"http://y.example/","cron":"@daily"}`,
		`{"url":"http://y.example/","keep":{"runs":1}}`, `{"url":"http://y.example/","state":"dead"}`, `{"url":"http://y.example/","queue":"none"}`, `{"url":"http://y.example/","on_success":{}}`} {
		require.Contains(t, c.want(422, "PUT", "/v1/tasks/k", `{"url":"http://x.example/","on_failure":`+f+`}`).Body.String(), `"pointer":"/on_failure/`, f)
	}
}

// Workers and explanations speak of queues and keys.
func TestAPI_WorkersAndExplain(t *testing.T) {
	client := durable.New(memstore.New())
	c := &caller{T: t, api: New(client), seen: map[string]map[int]bool{}}
	c.want(201, "PUT", "/v1/tasks/later", future)
	require.Contains(t, c.want(200, "GET", "/v1/tasks/later/explain", "").Body.String(), `"kind":"no worker"`)
	started := make(chan struct{})
	w := durable.NewWorker(client, durable.WithName("calls"), durable.WithShutdownTimeout(0))
	w.Handle("http", func(ctx context.Context, d durable.Delivery) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	}, durable.WithHandlerConcurrency(1))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	c.want(201, "PUT", "/v1/tasks/first", `{"url":"http://x.example/"}`)
	<-started
	c.want(201, "PUT", "/v1/tasks/second", `{"url":"http://x.example/"}`)
	var workers struct{ Workers []Worker }
	require.NoError(t, json.Unmarshal(c.want(200, "GET", "/v1/workers", "").Body.Bytes(), &workers))
	require.Len(t, workers.Workers, 1)
	x := workers.Workers[0]
	require.Equal(t, []WorkerQueue{{Queue: "http", Running: 1, Places: 1}}, x.Queues)
	require.Equal(t, []any{"calls", "first", "http"}, []any{x.Name, x.Running[0].Key, x.Running[0].Queue})
	var e Explanation
	require.NoError(t, json.Unmarshal(c.want(200, "GET", "/v1/tasks/second/explain", "").Body.Bytes(), &e))
	require.Equal(t, []any{"second", "pending", durable.ReasonWorkerLimit, "first", x.ID}, []any{e.Key, e.State, e.Reasons[0].Kind, e.Reasons[0].Holders[0].Key, e.Reasons[0].Holders[0].Worker})
	cancel()
	require.NoError(t, <-ended)
}

// A follow-up that is answered by 410 Gone does not end the repetition of the task that it
// follows, whose key it has.
func TestHandler_GoneFollowUp(t *testing.T) {
	client := durable.New(memstore.New())
	_, err := client.Schedule(t.Context(), durable.Task{Key: "k", Handler: "http", Every: time.Hour}, durable.After(time.Hour))
	require.NoError(t, err)
	h := Handler(client, func(context.Context, durable.Delivery) error { return &callback.StatusError{Code: http.StatusGone} })
	require.Error(t, h(t.Context(), durable.Delivery{Key: "k", Ended: &durable.Ended{Done: true}}))
	info, err := client.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Zero(t, info.Task.End)
	require.Error(t, h(t.Context(), durable.Delivery{Key: "k"}))
	_, err = client.Get(t.Context(), "k")
	require.ErrorIs(t, err, durable.ErrNotFound)
}

// Versions are the store's: If-Match holds over several nodes, and of many patches without it none
// is lost.
func TestAPI_IfMatchOverNodes(t *testing.T) {
	mem := memstore.New()
	var nodes []*caller
	for range 2 {
		nodes = append(nodes, &caller{T: t, api: New(durable.New(mem)), seen: map[string]map[int]bool{}})
	}
	tag := nodes[0].want(201, "PUT", "/v1/tasks/k", future).Header().Get("ETag")
	require.Equal(t, tag, nodes[1].want(200, "GET", "/v1/tasks/k", "").Header().Get("ETag"))
	second := nodes[1].want(200, "PATCH", "/v1/tasks/k", `{"method":"PUT"}`, "If-Match", tag).Header().Get("ETag")
	require.NotEqual(t, tag, second)
	for _, x := range []struct{ method, body string }{{"PUT", future}, {"PATCH", `{"method":"GET"}`}, {"PATCH", `{"paused":true}`}, {"DELETE", ""}} {
		nodes[0].want(412, x.method, "/v1/tasks/k", x.body, "If-Match", tag)
	}
	nodes[0].want(200, "PATCH", "/v1/tasks/k", `{"paused":true}`, "If-Match", second)
	nodes[1].want(200, "POST", "/v1/tasks/k/run", "") // a paused task runs once
	require.Contains(t, nodes[1].want(200, "GET", "/v1/tasks/k", "").Body.String(), `"paused"`)
	nodes[0].want(200, "PATCH", "/v1/tasks/k", `{"paused":false}`, "If-Match", "*")

	var patches sync.WaitGroup
	for i := range 10 {
		patches.Go(func() {
			body := fmt.Sprintf(`{"headers":{"H%d":"x"}}`, i)
			r := httptest.NewRequest("PATCH", "/v1/tasks/k", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			nodes[i%2].api.ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				t.Errorf("patch %d: %d %s", i, w.Code, w.Body)
			}
		})
	}
	patches.Wait()
	got := nodes[0].want(200, "GET", "/v1/tasks/k", "").Body.String()
	for i := range 10 {
		require.Contains(t, got, fmt.Sprintf("H%d", i))
	}
	tag = nodes[0].want(200, "GET", "/v1/tasks/k", "").Header().Get("ETag")
	nodes[1].want(204, "DELETE", "/v1/tasks/k", "", "If-Match", tag)
	nodes[0].want(412, "DELETE", "/v1/tasks/k", "", "If-Match", tag)
	nodes[0].want(412, "DELETE", "/v1/tasks/k", "", "If-Match", "*")
}
