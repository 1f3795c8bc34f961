package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// hostile are texts that a page must not show as they are.
var hostile = []string{`<script>x()</script>`, `"><img src=x onerror=x()>`, `'><svg/onload=x()>`, `</textarea><script>x()`, "javascript:x()//"}

// get sends a request and returns the answer. A form is sent by POST.
func get(h http.Handler, path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "http://localhost"+path, nil)
	if form != nil {
		r = httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Keys, bodies, headers, errors, results, notes and filters of any text are shown escaped, on each
// page. Each answer shuts frames and sniffing, and allows no inline script.
func TestService_HostileText(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	client := durable.New(memstore.New(), durable.WithLogger(quiet))
	s := New(client, Config{Log: quiet})
	w := durable.NewWorker(client, durable.WithName(hostile[0]), durable.WithVersion(hostile[1]))
	w.Handle("http", func(_ context.Context, d durable.Delivery) error {
		text := strings.TrimPrefix(d.Key, "dies")
		if err := d.SetResult(fmt.Appendf(nil, "%q", text)); err != nil {
			return err
		}
		return durable.NoRetry(errors.New(text))
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	put := func(key, fields string) {
		t.Helper()
		r := httptest.NewRequest("PUT", "http://localhost/v1/tasks/"+url.PathEscape(key), strings.NewReader(fields))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.Equal(t, 201, w.Code, w.Body)
	}
	paths := []string{"/", "/tasks", "/tasks?state=dead", "/tasks?state=done", "/repeating", "/dead", "/queues", "/workers", "/new", "/login", "/nothing"}
	for _, x := range hostile {
		task := fmt.Sprintf(`{"url":"http://x.example/%s","body":%q,"headers":{"X-H":%q},"on_failure":{"url":"http://y.example/","body":%q}`, url.QueryEscape(x), x, x, x)
		put("waits"+x, task+`,"delay":"1h"}`)
		put("dies"+x, task+"}")
		put("daily"+x, task+`,"cron":"0 9 * * *"}`)
		for _, key := range []string{"waits", "dies", "daily"} {
			paths = append(paths, "/tasks/"+url.PathEscape(key+x))
		}
		q := url.QueryEscape(x)
		paths = append(paths, "/tasks?prefix="+q, "/tasks?state="+q, "/tasks?state=dead&error="+q, "/tasks?due_before="+q, "/tasks?queue="+q, "/tasks?cursor="+q, "/?note="+q, "/bulk/"+url.PathEscape(x), "/tasks/"+url.PathEscape(x))
	}
	for {
		if st, err := client.Stats(ctx); err == nil && st.Dead == int64(2*len(hostile)) { // with their follow-ups
			break
		}
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, client.PauseHandler(ctx, "http", hostile[0]))
	check := func(path string, w *httptest.ResponseRecorder) {
		t.Helper()
		text := w.Body.String()
		for _, raw := range []string{"<script>x", "<img src=x", "<svg/onload", `href="javascript:`, `action="javascript:`} {
			require.NotContains(t, text, raw, path)
		}
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "script-src 'self';", path)
		require.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe", path)
		require.Equal(t, []string{"DENY", "nosniff"}, []string{w.Header().Get("X-Frame-Options"), w.Header().Get("X-Content-Type-Options")}, path)
	}
	for _, path := range paths {
		check(path, get(s, path, nil))
	}
	for _, x := range hostile {
		form := url.Values{"action": {x}, "key": {x}, "prefix": {x}, "state": {"dead"}, "task": {x}, "note": {x}, "version": {x}}
		for _, path := range []string{"/confirm", "/bulk", "/new", "/tasks/" + url.PathEscape("waits"+x) + "/edit", "/tasks/" + url.PathEscape("none"+x) + "/cancel", "/queues/" + url.PathEscape(x) + "/pause", "/queues/http/limit", "/store/" + url.PathEscape(x)} {
			check(path, get(s, path, form))
		}
	}
	cancel()
	require.NoError(t, <-ended)
}

// Names and values of headers cannot smuggle a request, and no request is too large.
func TestService_Limits(t *testing.T) {
	s := New(durable.New(memstore.New()), Config{Log: slog.New(slog.DiscardHandler)})
	for _, header := range []string{`"a\r\nHost":"x"`, `"X":"a\r\nb: c"`, `"X Y":"a"`, `"Transfer-Encoding":"chunked"`, `"Content-Length":"7"`, `"Connection":"close"`, `"Host":"x y"`, `"":"a"`} {
		r := httptest.NewRequest("PUT", "http://localhost/v1/tasks/k", strings.NewReader(`{"url":"http://x.example/","headers":{`+header+`}}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.Equal(t, 422, w.Code, header)
		require.Contains(t, w.Body.String(), `"pointer":"/headers"`, header)
	}
	require.Equal(t, 400, get(s, "/new", url.Values{"task": {strings.Repeat("x", 300<<10)}}).Code)
}

// Answers to wrong tokens have a limited rate, and at most 512 requests run at a time.
func TestService_Rates(t *testing.T) {
	tokens, err := ReadTokens(strings.NewReader("w rw writer-writer-writer-writer"))
	require.NoError(t, err)
	s := New(durable.New(memstore.New()), Config{Log: slog.New(slog.DiscardHandler), Tokens: tokens})
	statuses := map[int]int{}
	for range 100 {
		r := httptest.NewRequest("GET", "/v1/stats", nil)
		r.Header.Set("Authorization", "Bearer wrong")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if statuses[w.Code]++; w.Code == http.StatusTooManyRequests {
			require.Equal(t, "1", w.Header().Get("Retry-After"))
		}
	}
	require.GreaterOrEqual(t, statuses[401], wrongTokensBurst)
	require.Positive(t, statuses[429])

	release, all := make(chan struct{}), make(chan int, maxAtOnce+1)
	g := newGuard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }), &Config{})
	for range maxAtOnce + 1 {
		go func() { all <- get(g, "/v1/stats", nil).Code }()
	}
	require.Equal(t, http.StatusTooManyRequests, <-all) // the only one that is not held
	close(release)
	for range maxAtOnce {
		require.Equal(t, http.StatusOK, <-all)
	}
}
