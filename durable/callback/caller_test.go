package callback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopback allows requests to the servers of these tests.
var loopback = WithAllowed(netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))

func newCaller(t *testing.T, opts ...Option) *Caller {
	c := New(append([]Option{loopback}, opts...)...)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func serve(t *testing.T, f http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s
}

// delivery returns the request's task as a worker passes it to Handle.
func delivery(t *testing.T, r Request) durable.Delivery {
	t.Helper()
	task, err := r.Task("key 1/ü")
	require.NoError(t, err)
	require.Equal(t, Name, task.Handler)
	return durable.Delivery{Key: task.Key, Handler: task.Handler, Body: task.Body, Attempt: 2, MaxAttempts: 5,
		Token: 17, Due: time.UnixMicro(1758812345678901)}
}

func call(t *testing.T, c *Caller, r Request) error {
	t.Helper()
	return c.Handle(context.Background(), delivery(t, r))
}

func isDead(err error) bool {
	var never *durable.NoRetryError
	return errors.As(err, &never)
}

func retryIn(err error) time.Duration {
	var after *durable.RetryAfterError
	if !errors.As(err, &after) {
		return 0
	}
	return after.After
}

func TestCaller_SendsWhatTheTaskSays(t *testing.T) {
	for _, body := range []string{"", `{"a":"<&>"}`, "\xff\x00bytes"} {
		var got *http.Request
		var sent []byte
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got = r
			sent, _ = io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
		})
		r := Request{URL: s.URL + "/a/b?c=ü&d=%20", Method: "PUT", Body: []byte(body),
			Headers: map[string]string{"X-A": "1", "Host": "shop.example", "User-Agent": "mine"}}
		require.NoError(t, call(t, newCaller(t), r))
		require.Equal(t, "PUT", got.Method)
		require.Equal(t, "/a/b?c=%C3%BC&d=%20", got.URL.String())
		require.Equal(t, body, string(sent))
		require.Equal(t, "shop.example", got.Host)
		require.Equal(t, "mine", got.Header.Get("User-Agent"))
		require.Equal(t, "1", got.Header.Get("X-A"))
		require.Equal(t, "17", got.Header.Get(headerToken))
		require.Equal(t, "2", got.Header.Get(headerAttempt))
		require.Equal(t, "2025-09-25T14:59:05.678901Z", got.Header.Get(headerDue))
		require.NotEmpty(t, got.Header.Get(headerIdempotency))
		key, err := url.PathUnescape(got.Header.Get(headerKey))
		require.NoError(t, err)
		require.Equal(t, "key 1/ü", key)
		require.Empty(t, got.Header.Get(headerSignature), "there is no secret")
	}
}

// A request on a kept connection that ends without an answer is sent once more, and not on
// every kept connection.
func TestCaller_KeptConnectionEnds(t *testing.T) {
	const kept = 4
	for _, body := range []string{"", "body"} {
		var requests, warm atomic.Int32
		allWarm := make(chan struct{})
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got, _ := io.ReadAll(r.Body)
			assert.Equal(t, body, string(got))
			if r.URL.Path == "/warm" {
				if warm.Add(1) == kept {
					close(allWarm)
				}
				<-allWarm
				return
			}
			if requests.Add(1); r.URL.Path == "/poison" || requests.Load() == 1 {
				conn, _, _ := w.(http.Hijacker).Hijack()
				_ = conn.Close()
			}
		})
		c := newCaller(t)
		request := func(path string) Request {
			return Request{URL: s.URL + path, Body: []byte(body), Headers: map[string]string{"X-Idempotency-Key": "1"}}
		}
		var calls sync.WaitGroup
		for range kept {
			calls.Go(func() { assert.NoError(t, c.Handle(context.Background(), delivery(t, request("/warm")))) })
		}
		calls.Wait()
		require.NoError(t, call(t, c, request("/closed")))
		require.EqualValues(t, 2, requests.Swap(1))
		require.Error(t, call(t, c, request("/poison")))
		require.EqualValues(t, 3, requests.Load())
	}
}

func TestCaller_PostsUnlessToldOtherwise(t *testing.T) {
	var method string
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { method = r.Method })
	require.NoError(t, call(t, newCaller(t), Request{URL: s.URL}))
	require.Equal(t, "POST", method)
}

func TestCaller_StatusDecides(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscan(r.URL.Path[1:], &status)
		w.WriteHeader(status)
		if status != 204 && status != 304 {
			io.WriteString(w, "because\n\x1b of this")
		}
	})
	c := newCaller(t)
	for status, want := range map[int]Verdict{
		200: Success, 201: Success, 204: Success, 299: Success,
		408: Retry, 425: Retry, 429: Retry, 500: Retry, 502: Retry, 503: Retry, 599: Retry,
		301: Dead, 304: Dead, 400: Dead, 401: Dead, 404: Dead, 409: Dead, 410: Dead, 600: Dead,
	} {
		err := call(t, c, Request{URL: fmt.Sprintf("%s/%d?secret=1", s.URL, status)})
		require.Equal(t, want == Success, err == nil, "%d: %v", status, err)
		require.Equal(t, want == Dead, isDead(err), "%d: %v", status, err)
		require.Zero(t, retryIn(err))
		if err != nil {
			require.NotContains(t, err.Error(), "secret")
			require.Contains(t, err.Error(), fmt.Sprint(status))
			if status != 304 && status != 301 {
				require.Contains(t, err.Error(), "because of this")
			}
		}
	}
	c = newCaller(t, WithJudge(func(status int) Verdict {
		if status == http.StatusConflict {
			return Success // it was done before
		}
		return Judge(status)
	}))
	require.NoError(t, call(t, c, Request{URL: s.URL + "/409"}))
	require.True(t, isDead(call(t, c, Request{URL: s.URL + "/404"})))
}

func TestCaller_RetryAfter(t *testing.T) {
	date := time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC) // the receiver's clock is years ahead
	for _, tt := range []struct {
		status          int
		header, theDate string
		low, high       time.Duration
	}{
		{429, "7", "", 7 * time.Second, 8 * time.Second},
		{503, date.Add(20 * time.Second).Format(http.TimeFormat), date.Format(http.TimeFormat), 20 * time.Second, 23 * time.Second},
		{503, "in half a minute", "none", 28 * time.Second, 34 * time.Second},
		{500, "99999999999999999999999", "", 0, 0},
		{429, "9999999999999999999", "", time.Hour, 67 * time.Minute},
		{429, "86400", "", time.Hour, 67 * time.Minute}, // the maximum
		{429, "0", "", 0, 0},
		{429, "-5", "", 0, 0},
		{429, "soon", "", 0, 0},
		{429, date.Add(-time.Hour).Format(http.TimeFormat), date.Format(http.TimeFormat), 0, 0},
		{404, "7", "", 0, 0},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", tt.header)
			switch tt.theDate {
			case "":
			case "none":
				w.Header()["Date"] = nil
				w.Header().Set("Retry-After", time.Now().Add(30*time.Second).UTC().Format(http.TimeFormat))
			default:
				w.Header().Set("Date", tt.theDate)
			}
			w.WriteHeader(tt.status)
		})
		begin := time.Now()
		err := call(t, newCaller(t), Request{URL: s.URL})
		took := time.Since(begin)
		require.Error(t, err)
		require.Equal(t, tt.status == 404, isDead(err))
		d := retryIn(err)
		low := tt.low
		if tt.theDate == "none" { // by the clock of the caller, for whom the answer took its time
			low -= took
		}
		require.GreaterOrEqual(t, d, low, tt.header)
		require.LessOrEqual(t, d, tt.high, tt.header)
	}
}

func TestCaller_SlowReceiver(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/slow" {
			<-release
		}
	})
	defer close(release)
	err := call(t, newCaller(t, WithTimeout(20*time.Millisecond)), Request{URL: s.URL})
	require.ErrorIs(t, err, errTimeout)
	require.False(t, isDead(err), "the task is tried again")
	d := delivery(t, Request{URL: s.URL + "/slow"})
	d.Timeout = time.Hour
	require.NoError(t, newCaller(t, WithTimeout(time.Nanosecond)).Handle(t.Context(), d), "the task's own timeout counts")

	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(20*time.Millisecond, func() { cancel(durable.ErrLeaseLost) })
	err = newCaller(t).Handle(ctx, delivery(t, Request{URL: s.URL}))
	require.ErrorIs(t, err, durable.ErrLeaseLost)
}

// A slow body does not matter: the status decides.
func TestCaller_SlowBody(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-release
	})
	defer close(release)
	require.NoError(t, call(t, newCaller(t), Request{URL: s.URL}))
}

func TestCaller_Reset(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	})
	err := call(t, newCaller(t), Request{URL: s.URL + "?secret=1"})
	require.Error(t, err)
	require.False(t, isDead(err))
	require.NotContains(t, err.Error(), "secret")
	s.Close()
	err = call(t, newCaller(t), Request{URL: s.URL})
	require.ErrorContains(t, err, "refused")
	require.False(t, isDead(err))
}

func TestCaller_RedirectLoop(t *testing.T) {
	var n atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
	})
	err := call(t, newCaller(t), Request{URL: s.URL})
	require.ErrorContains(t, err, "redirects are not followed")
	require.True(t, isDead(err))
	require.EqualValues(t, 1, n.Load())
}

// The status of a redirect decides, even if its Location is not a valid URL.
func TestCaller_RedirectToNoURL(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://[::1")
			w.WriteHeader(status)
		})
		err := call(t, newCaller(t), Request{URL: s.URL})
		require.ErrorContains(t, err, "redirects are not followed")
		require.True(t, isDead(err), status)
		judged := WithJudge(func(got int) Verdict {
			require.Equal(t, status, got)
			return Success
		})
		require.NoError(t, call(t, newCaller(t, judged), Request{URL: s.URL}))
	}
}

// The URL's user is sent as basic authentication, unless a header sets Authorization.
func TestCaller_BasicAuth(t *testing.T) {
	var got string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") })
	c := newCaller(t)
	at := strings.Replace(s.URL, "http://", "http://me:s%2Fecret@", 1)
	require.NoError(t, call(t, c, Request{URL: at}))
	require.Equal(t, "Basic bWU6cy9lY3JldA==", got)
	require.NoError(t, call(t, c, Request{URL: at, Headers: map[string]string{"Authorization": "Bearer x"}}))
	require.Equal(t, "Bearer x", got)
	require.NoError(t, call(t, c, Request{URL: s.URL}))
	require.Empty(t, got)
}

// Handle stops reading a response that does not end.
func TestCaller_OversizeResponse(t *testing.T) {
	for _, status := range []int{200, 500} {
		var sent atomic.Int64
		cutOff := make(chan struct{})
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			defer close(cutOff)
			w.WriteHeader(status)
			piece := []byte(strings.Repeat("x", 64<<10))
			for sent.Load() < 1<<30 {
				n, err := w.Write(piece)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
		err := call(t, newCaller(t), Request{URL: s.URL})
		require.Equal(t, status == 200, err == nil, "%v", err)
		<-cutOff
		require.Less(t, sent.Load(), int64(1<<30))
	}
}

// A receiver's status line must not reach a terminal or a log with its control characters.
func TestCaller_StatusLine(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = conn.Write([]byte("HTTP/1.1 500 \x1b[31mBad\x7f \u009b2J\xff " + strings.Repeat("long ", 500) + "\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"))
			conn.Close()
		}
	}()
	err = call(t, newCaller(t), Request{URL: "http://" + listener.Addr().String()})
	require.Error(t, err)
	require.True(t, utf8.ValidString(err.Error()))
	require.False(t, strings.ContainsFunc(err.Error(), unicode.IsControl), "%q", err)
	require.Less(t, len(err.Error()), 300)
	require.Contains(t, err.Error(), "500 [31mBad 2J long")
}

func TestCaller_OversizeHeader(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 128<<10))
	})
	err := call(t, newCaller(t), Request{URL: s.URL})
	require.Error(t, err)
	require.False(t, isDead(err))
}

func TestCaller_RefusesPrivateAddresses(t *testing.T) {
	var n atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { n.Add(1) })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	c := New()
	defer c.Close()
	for _, host := range []string{
		"127.0.0.1", "127.1.2.3", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]",
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "[fe80::1]", "[fd00::1]",
	} {
		err := call(t, c, Request{URL: "http://" + host + ":" + port})
		require.ErrorIs(t, err, ErrAddress, host)
		require.ErrorContains(t, err, "callback.WithAllowed")
		require.True(t, isDead(err), host)
		err = c.CheckURL("http://" + host + ":" + port + "/a")
		if host == "localhost" { // a name
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrAddress, host)
		}
	}
	require.Zero(t, n.Load())
	require.NoError(t, newCaller(t).CheckURL(s.URL))
	for _, u := range []string{"https://1.1.1.1", "http://[2606:4700::1111]/", "http://x.example/"} {
		require.NoError(t, c.CheckURL(u), u)
	}
	require.ErrorIs(t, c.CheckURL("https://[fe80::1%25eth0]/"), ErrAddress)
	require.ErrorIs(t, c.CheckURL("ftp://10.0.0.1/"), ErrInvalid)
	own := New(WithRefused(func(a netip.AddrPort) bool { return a.Port() == 443 }))
	require.ErrorIs(t, own.CheckURL("https://1.1.1.1"), ErrAddress)
	require.NoError(t, own.CheckURL("http://1.1.1.1"))
	require.NoError(t, call(t, newCaller(t), Request{URL: s.URL}), "the server can be reached")
	require.EqualValues(t, 1, n.Load())
}

// The Caller checks the address to which it connects, because two lookups of a name may
// return different addresses.
func TestCaller_LooksAtTheAddressThatIsDialled(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was reached") })
	addr := netip.MustParseAddrPort(s.Listener.Addr().String())
	var dialled []string
	c := New()
	defer c.Close()
	tr := c.transport
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled = append(dialled, address)
		return dial(ctx, network, addr.String()) // like a resolver whose answer changes
	}
	err := call(t, c, Request{URL: "http://public.example/"})
	require.ErrorIs(t, err, ErrAddress)
	require.Equal(t, []string{"public.example:80"}, dialled)
}

func TestCaller_UsesNoProxyOfTheEnvironment(t *testing.T) {
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	err := call(t, New(), Request{URL: "http://10.1.2.3:9/"})
	require.ErrorIs(t, err, ErrAddress)
}

func TestCaller_LimitPerHost(t *testing.T) {
	const limit, due = 4, 400
	type receiver struct{ now, most, all atomic.Int32 }
	var receivers [2]receiver
	var urls []string
	for i := range receivers {
		x := &receivers[i]
		urls = append(urls, serve(t, func(http.ResponseWriter, *http.Request) {
			n := x.now.Add(1)
			for old := x.most.Load(); n > old && !x.most.CompareAndSwap(old, n); old = x.most.Load() {
			}
			time.Sleep(time.Millisecond)
			x.all.Add(1)
			x.now.Add(-1)
		}).URL)
	}
	c := newCaller(t, WithPerHost(limit))
	var all sync.WaitGroup
	var back atomic.Int32
	for i := range due {
		d := delivery(t, Request{URL: urls[i%2]})
		all.Go(func() {
			for {
				err := c.Handle(context.Background(), d)
				if err == nil {
					return
				}
				var later *durable.HandBackError
				if !errors.As(err, &later) || later.After < minDelay || later.After > maxDelay {
					t.Error(err)
				}
				back.Add(1)
				time.Sleep(later.After)
			}
		})
	}
	all.Wait()
	require.Positive(t, back.Load())
	for i := range receivers {
		require.EqualValues(t, due/2, receivers[i].all.Load())
		require.LessOrEqual(t, receivers[i].most.Load(), int32(limit))
		require.Greater(t, receivers[i].most.Load(), int32(1), "requests are concurrent")
	}
	for range 2 {
		d := delivery(t, Request{URL: urls[0]})
		require.NoError(t, c.Handle(context.Background(), d))
	}
}

func TestHostOf(t *testing.T) {
	for in, want := range map[string]string{
		"http://A.example": "a.example:80", "http://a.example:80/x": "a.example:80", "https://a.example": "a.example:443",
		"http://[::1]:8080": "[::1]:8080",
	} {
		u, err := url.Parse(in)
		require.NoError(t, err)
		require.Equal(t, want, hostAndPort(u))
	}
}
