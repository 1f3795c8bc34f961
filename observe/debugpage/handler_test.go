package debugpage_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/observe/debugpage"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func get(t *testing.T, h http.Handler, target string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), w.Body.String()
}

func TestHandler_OnlyReads(t *testing.T) {
	h := debugpage.Handler()
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "http://localhost/", nil))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	}
	server := httptest.NewServer(h)
	defer server.Close()
	resp, err := http.Head(server.URL)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	body, _ := io.ReadAll(resp.Body)
	require.NoError(t, resp.Body.Close())
	require.Empty(t, body)
}

func TestHandler_Hosts(t *testing.T) {
	for _, c := range []struct {
		host string
		opts []debugpage.Option
		code int
	}{
		{"localhost", nil, 200},
		{"localhost:8080", nil, 200},
		{"LocalHost.", nil, 200},
		{"app.localhost:80", nil, 200},
		{"127.0.0.1", nil, 200},
		{"127.8.9.1:1234", nil, 200},
		{"[::1]", nil, 200},
		{"[::1]:8080", nil, 200},
		{"", nil, 403},
		{"example.org", nil, 403},
		{"localhost.example.org", nil, 403},
		{"127.0.0.1.example.org", nil, 403},
		{"notlocalhost", nil, 403},
		{"10.0.0.1:80", nil, 403},
		{"0.0.0.0", nil, 403},
		{"[::]:80", nil, 403},
		{"Timers.Example.org:80", []debugpage.Option{debugpage.WithHosts("timers.example.org")}, 200},
		{"other.example.org", []debugpage.Option{debugpage.WithHosts("timers.example.org")}, 403},
		{"[fd00::1]:80", []debugpage.Option{debugpage.WithHosts("[fd00::1]")}, 200},
		{"any", []debugpage.Option{debugpage.WithHosts("*")}, 200},
		{"ops:80", []debugpage.Option{debugpage.WithHosts("ops:80")}, 200},
		{"ops:81", []debugpage.Option{debugpage.WithHosts("ops:80")}, 200},
		{"ops", []debugpage.Option{debugpage.WithHosts("OPS.:80")}, 200},
		{"[fd00::1]:81", []debugpage.Option{debugpage.WithHosts("[fd00::1]:80")}, 200},
		{"fd00::1", []debugpage.Option{debugpage.WithHosts("fd00::1")}, 200},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		debugpage.Handler(c.opts...).ServeHTTP(w, r)
		require.Equal(t, c.code, w.Code, "Host %q", c.host)
		if c.code == 403 {
			require.NotContains(t, w.Body.String(), "<", "not a page")
		}
	}
}

func TestWithHosts_Refuses(t *testing.T) {
	for _, host := range []string{"", ":80", "http://ops", "ops/debug", "me@ops", "a b"} {
		require.PanicsWithValue(t, fmt.Sprintf("debugpage: WithHosts: a host must be a name or an address, got %q", host),
			func() { debugpage.WithHosts("ok", host) })
	}
}

func TestHandler_LoadsNothingFromElsewhere(t *testing.T) {
	s := timer.New(timer.WithName("one"))
	defer s.Close()
	h := debugpage.Handler()
	resp, body := get(t, h, "http://localhost/debug/timers")
	policy := resp.Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
	require.NotContains(t, body, "style=")
	require.NotRegexp(t, regexp.MustCompile(`\son[a-z]+=`), body)
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		require.True(t, strings.HasPrefix(m[1], "?"), m[1])
	}
	for asset, kind := range map[string]string{"style": "text/css; charset=utf-8", "script": "text/javascript; charset=utf-8"} {
		resp, body := get(t, h, "http://localhost/debug/timers?asset="+asset)
		require.Equal(t, kind, resp.Header.Get("Content-Type"))
		require.NotEmpty(t, body)
		require.NotContains(t, body, "http")
	}
	resp, _ = get(t, h, "http://localhost/?asset=none")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	resp, _ = get(t, h, "http://localhost/?format=xml")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
}

// wellFormed requires that all elements of the page are closed, in the right order.
func wellFormed(t *testing.T, body string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(body))
	d.Strict = false
	d.AutoClose = []string{"meta", "link"}
	d.Entity = xml.HTMLEntity
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func busyHour() {}

func TestHandler_Page(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithName("<b>orders & more</b>"),
			timer.WithPanicHandler(func(any, []byte) {}))
		defer s.Close()
		for range 5000 {
			s.AfterFunc(time.Hour, busyHour)
		}
		s.NewTicker(time.Second)
		s.AfterFunc(time.Millisecond, func() { panic("broken") })
		s.AfterFunc(time.Millisecond, func() {})
		h := debugpage.Handler(debugpage.WithSchedulers(s))
		_, body := get(t, h, "http://localhost/")
		wellFormed(t, body)
		require.Contains(t, body, "Reload the page to see rates")
		time.Sleep(10 * time.Second)
		synctest.Wait() // for the tick of this moment
		_, body = get(t, h, "http://localhost/")
		wellFormed(t, body)
		require.NotContains(t, body, "Reload the page to see rates")
		require.NotContains(t, body, "<b>orders")
		require.Contains(t, body, "debugpage_test.busyHour")
		require.Contains(t, body, "5\u202f001") // pending
		require.Contains(t, body, "in 1 h")

		// A request right after another gets rates too.
		resp, body := get(t, h, "http://localhost/?format=json")
		require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
		var got struct {
			Schedulers []struct {
				Name   string
				Counts struct{ Pending, Fired, Panicked int }
				Rates  *struct {
					Fired float64 `json:"fired_per_second"`
				}
				Due []struct {
					Until  *float64 `json:"until_seconds"`
					Timers int
				}
				Top []struct {
					Function, Kind string
					Timers         int
				}
				Read int
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Len(t, got.Schedulers, 1)
		g := got.Schedulers[0]
		require.Equal(t, "<b>orders & more</b>", g.Name)
		require.Equal(t, 5001, g.Counts.Pending)
		require.InDelta(t, 1.2, g.Rates.Fired, 0.01, "12 in 10 s")
		var due []int
		for _, w := range g.Due {
			due = append(due, w.Timers)
		}
		require.Equal(t, []int{0, 0, 1, 0, 0, 0, 5000, 0, 0}, due)
		require.Equal(t, "func", g.Top[0].Kind)
		require.Equal(t, 5000, g.Top[0].Timers)
		require.Equal(t, 5001, g.Read)
		require.Equal(t, 1, g.Counts.Panicked)
	})
}

// Rates and the p99 are of the last ten seconds or so, lines of two minutes, and rows without
// timers are left out.
func TestHandler_Window(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := timertest.NewClock(time.Now())
		s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
		defer s.Close()
		h := debugpage.Handler(debugpage.WithSchedulers(s))
		late := func(n int, by time.Duration) { // n timers that fire late
			for range n {
				s.AfterFunc(time.Millisecond, func() {})
			}
			clk.Advance(time.Millisecond + by)
		}
		type rates struct {
			Fired   float64 `json:"fired_per_second"`
			P99     float64 `json:"late_p99_seconds"`
			Seconds float64 `json:"over_seconds"`
		}
		read := func() *rates {
			_, body := get(t, h, "http://localhost/?format=json")
			var got struct{ Schedulers []struct{ Rates *rates } }
			require.NoError(t, json.Unmarshal([]byte(body), &got))
			return got.Schedulers[0].Rates
		}
		require.Nil(t, read())
		late(30, 3*time.Second)
		time.Sleep(time.Second)
		got := read()
		require.Equal(t, 1.0, got.Seconds)
		require.Equal(t, 30.0, got.Fired)
		for range 20 {
			time.Sleep(time.Second)
			got = read()
		}
		require.Equal(t, rates{Seconds: 10}, *got, "what fired 20 s ago is not in the window")
		late(50, 0)
		time.Sleep(time.Second)
		got = read()
		require.Equal(t, 10.0, got.Seconds)
		require.Equal(t, 5.0, got.Fired)
		require.Less(t, got.P99, 1.0)

		s.AfterFunc(time.Hour, busyHour)
		_, body := get(t, h, "http://localhost/")
		wellFormed(t, body)
		require.Contains(t, body, "Rates and p99 of the last 10 s.")
		require.Equal(t, 5, strings.Count(body, "<polyline points="), "a line for each number")
		require.Contains(t, body, `aria-label="last 2 min, at most 50"`)
		require.Contains(t, body, ">in 1 h<")
		require.NotContains(t, body, ">in 10 s<")
		require.NotContains(t, body, "refused")

		time.Sleep(2 * time.Minute)
		require.Nil(t, read(), "the latest numbers are too old")
		_, body = get(t, h, "http://localhost/")
		require.NotContains(t, body, "polyline")
	})
}

func TestHandler_NamedSchedulers(t *testing.T) {
	h := debugpage.Handler()
	a, b := timer.New(timer.WithName("twin")), timer.New(timer.WithName("twin"))
	c := timer.New(timer.WithName("a/b?c=d&e"))
	unnamed := timer.New()
	defer a.Close()
	defer b.Close()
	defer unnamed.Close()
	b.AfterFunc(time.Hour, busyHour)
	_, body := get(t, h, "http://localhost/")
	wellFormed(t, body)
	require.Contains(t, body, "twin#2")
	require.Contains(t, body, "?scheduler=a%2Fb%3Fc%3Dd%26e")
	require.NotContains(t, body, "Falling due", "no Scheduler is selected")
	_, body = get(t, h, "http://localhost/?scheduler=twin%232")
	wellFormed(t, body)
	require.Contains(t, body, "Falling due")
	require.Contains(t, body, "busyHour")
	_, body = get(t, h, "http://localhost/?scheduler=twin")
	require.Contains(t, body, "Falling due")
	require.NotContains(t, body, "busyHour")
	require.NoError(t, c.Close())
	resp, body := get(t, h, "http://localhost/?scheduler=a/b?c=d%26e&refresh=2")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	wellFormed(t, body)
	require.Contains(t, body, "No Scheduler is named")
	require.Contains(t, body, `http-equiv="refresh" content="2"`)
	for _, query := range []string{"?scheduler=", "?format=json&scheduler="} {
		resp, _ = get(t, h, "http://localhost/"+query)
		require.Equal(t, http.StatusNotFound, resp.StatusCode)
	}
	w, body := get(t, h, "http://localhost/?format=json&scheduler=nope")
	require.Equal(t, http.StatusNotFound, w.StatusCode)
	require.Contains(t, body, `no Scheduler is named "nope"`)
}

// Names may contain any bytes. But the page is UTF-8 without control characters, and has
// a link to each Scheduler.
func TestHandler_AnyBytes(t *testing.T) {
	name := "a\xff\xff\x01\x00<b>\u009f\"&"
	s := timer.New(timer.WithName(name))
	other := timer.New(timer.WithName("other"))
	defer s.Close()
	defer other.Close()
	h := debugpage.Handler(debugpage.WithSchedulers(s, other))
	check := func(body string) {
		t.Helper()
		wellFormed(t, body)
		require.True(t, utf8.ValidString(body))
		require.False(t, strings.ContainsFunc(body, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }))
	}
	_, body := get(t, h, "http://localhost/")
	check(body)
	link := regexp.MustCompile(`<th scope="row"><a href="([^"]*)">a`).FindStringSubmatch(body)
	require.NotNil(t, link)
	resp, body := get(t, h, "http://localhost/"+html.UnescapeString(link[1]))
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, body, "Falling due")
	check(body)
	_, body = get(t, h, "http://localhost/?format=json")
	var all struct{ Schedulers []struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(body), &all))
	resp, _ = get(t, h, "http://localhost/?scheduler="+url.QueryEscape(all.Schedulers[0].Name))
	require.Equal(t, http.StatusOK, resp.StatusCode, "the name in the JSON selects the Scheduler")
	resp, body = get(t, h, "http://localhost/?scheduler=%fe%01")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	check(body)
}

// badExecutor is an executor that panics in Stats.
type badExecutor struct{ executor.Executor }

func (badExecutor) Stats() executor.Stats { panic("<i>no stats</i>") }

// badClock is a clock that panics after broken is set.
type badClock struct {
	*timertest.Clock
	broken atomic.Bool
}

func (c *badClock) Now() time.Time {
	if c.broken.Load() {
		panic("no time")
	}
	return c.Clock.Now()
}

// If reading a Scheduler panics, the page shows the panic and the other Schedulers.
func TestHandler_ASchedulerThatPanics(t *testing.T) {
	clk := &badClock{Clock: timertest.NewClock(time.Unix(1e9, 0))}
	all := []*timer.Scheduler{
		timer.New(timer.WithName("bad stats"), timer.WithExecutor(badExecutor{executor.NewInline()})),
		timer.New(timer.WithName("bad clock"), timer.WithClock(clk), timer.WithExecutor(executor.NewInline())),
		timer.New(timer.WithName("fine")),
	}
	for _, s := range all {
		defer s.Close()
	}
	all = append(all, new(timer.Scheduler))
	names := []string{"bad stats", "bad clock", "fine", "unnamed"}
	errs := []string{"observe: panic: <i>no stats</i>", "panic: no time", "", "observe: panic: timer: a Scheduler that was not made by New"}
	clk.broken.Store(true)
	defer clk.broken.Store(false)
	h := debugpage.Handler(debugpage.WithSchedulers(all...))
	resp, body := get(t, h, "http://localhost/")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	wellFormed(t, body)
	require.Equal(t, 4, strings.Count(body, `<th scope="row"><a href=`))
	require.Contains(t, body, "Reading it failed: observe: panic: &lt;i&gt;no stats")
	require.Contains(t, body, "Reading it failed: "+errs[3])

	resp, body = get(t, h, "http://localhost/?format=json")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var got struct {
		Schedulers []struct {
			Name, Error string
			Counts      *struct{ Pending int }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Len(t, got.Schedulers, len(all))
	for i := range names {
		require.Equal(t, strings.Contains(errs[i], "observe"), got.Schedulers[i].Counts == nil, "numbers")
	}
	list := got.Schedulers
	for i, name := range names {
		require.Equal(t, name, list[i].Name)

		resp, body := get(t, h, "http://localhost/?scheduler="+url.QueryEscape(name))
		require.Equal(t, http.StatusOK, resp.StatusCode)
		wellFormed(t, body)
		require.Equal(t, errs[i] == "", strings.Contains(body, "Falling due"))
		require.Contains(t, body, html.EscapeString(errs[i]))

		_, body = get(t, h, "http://localhost/?format=json&scheduler="+url.QueryEscape(name))
		got.Schedulers = nil
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Len(t, got.Schedulers, 1)
		require.Equal(t, errs[i], got.Schedulers[0].Error)
	}
}

func TestHandler_NoSchedulers(t *testing.T) {
	_, body := get(t, debugpage.Handler(debugpage.WithSchedulers([]*timer.Scheduler{}...)), "http://localhost/")
	wellFormed(t, body)
	require.Contains(t, body, "No Scheduler has a name")
	_, body = get(t, debugpage.Handler(), "http://localhost/?format=json")
	require.True(t, json.Valid([]byte(body)))
}

// The page reads at most 100,000 pending timers, and says if there are more.
func TestHandler_OfVeryMany(t *testing.T) {
	s := timer.New(timer.WithClock(timertest.NewClock(time.Unix(1e9, 0))), timer.WithShards(4))
	defer s.Close()
	page := func() string {
		_, body := get(t, debugpage.Handler(debugpage.WithSchedulers(s)), "http://localhost/")
		wellFormed(t, body)
		return body
	}
	for i := range 100_000 {
		s.AfterFunc(time.Duration(1+i)*time.Millisecond, busyHour)
	}
	require.NotContains(t, page(), "more are pending")
	s.AfterFunc(time.Hour, busyHour)
	require.Contains(t, page(), "Only 100\u202f000 timers were read: more are pending.")
	require.Contains(t, page(), "Falling due: a sample of 100\u202f000<")
	require.Contains(t, page(), "Pending timers by function: a sample of 100\u202f000<")
}

func TestHandler_FromManyGoroutines(t *testing.T) {
	s := timer.New()
	defer s.Close()
	h := debugpage.Handler(debugpage.WithSchedulers(s))
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range 50 {
				s.AfterFunc(time.Duration(i)*time.Millisecond, busyHour)
				r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		}()
	}
	for range 4 {
		<-done
	}
}
