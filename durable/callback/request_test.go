package callback

import (
	"bytes"
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
)

func TestRequest_RefusesWhatCannotBeSent(t *testing.T) {
	for _, r := range []Request{
		{},
		{URL: "ftp://a.example"},
		{URL: "a.example"},
		{URL: "http://"},
		{URL: "http://:80"},
		{URL: "http://a.example/\x00"},
		{URL: "http://a.example", Method: "GET /"},
		{URL: "http://a.example", Headers: map[string]string{"": "x"}},
		{URL: "http://a.example", Headers: map[string]string{"a b": "x"}},
		{URL: "http://a.example", Headers: map[string]string{"a": "x\r\nb: c"}},
		{URL: "http://a.example", Headers: map[string]string{"idempotency-key": "x"}},
		{URL: "http://a.example", Headers: map[string]string{"tickless-signature": "x"}},
		{URL: "http://a.example", Headers: map[string]string{"Content-Length": "1"}},
		{URL: "http://a.example/?a b"},
		{URL: "http://a.example/?a\xff"},
		{URL: "http://a.example:99999/"},
		{URL: "http://a.example:0/"},
		{URL: "http://xn--a\u00e4/"},
		{URL: "http://a.example", Method: "CONNECT"},
		{URL: "http://a.example", Headers: map[string]string{"X-A": "1", "x-a": "2"}},
		{URL: "http://a.example", Headers: map[string]string{"a": "\xff"}},
		{URL: "http://a.example", Headers: map[string]string{"Host": ""}},
		{URL: "http://a.example", Headers: map[string]string{"Host": "a b"}},
		{URL: "http://a.example", Headers: map[string]string{"host": "b.example/x"}},
		{URL: "http://a.example", Headers: map[string]string{"Host": "http://b.example"}},
		{URL: "http://a.example", Headers: map[string]string{"Host": "u@b.example"}},
		{URL: "http://a.example", Headers: map[string]string{"Host": "b.example:99999"}},
		{URL: "http://a.example", Headers: map[string]string{"Host": "b.example?x"}},
		{URL: "http://a.example", Headers: map[string]string{"Host": ":80"}},
		{URL: "http://a.example", Body: bytes.Repeat([]byte{0}, durable.MaxTask*3/4)},
		{URL: "http://a.example", Body: bytes.Repeat([]byte{0xff}, durable.MaxTask*3/4)},
	} {
		_, err := r.Task("k")
		require.ErrorIs(t, err, ErrInvalid, "%+v", r)
	}
	_, err := Request{URL: "http://u:secret@/"}.Task("k")
	require.ErrorIs(t, err, ErrInvalid)
	require.NotContains(t, err.Error(), "secret")
}

// Errors contain neither the user nor the query of a URL, because dead letters show
// errors.
func TestRequest_ErrorsHaveNoSecrets(t *testing.T) {
	for _, raw := range []string{
		"ftp://me:pw@a.example/?token=1",
		"http://me:pw@/?token=1",
		"http://me:pw@a.example:99999/?token=1",
		"http://me:pw@a.example/?token=\xff",
		"http://me:pw@a.example/?token=a b",
		"http://me:pw@a.example/%zz?token=1",
		"http://me:pw@a.example/?token=\x00",
		"http://me:pw @a.example/?token=1",
		"http://me:pw/1@a.example/?token=1",
		"http://a.example:x/?token=1",
		"ftp://me:12/pw@a.example/?token=1",
		"http://me:0/pw@a.example/?token=1",
		"http://a.example/?token=\x7f",
	} {
		_, err := Request{URL: raw}.Task("k")
		require.ErrorIs(t, err, ErrInvalid, raw)
		require.NotContains(t, err.Error(), "pw", raw)
		require.NotContains(t, err.Error(), "token", raw)
	}
}

// A request that Task accepts reaches its receiver, even if it is unusual.
func TestRequest_WhatIsUnusualArrives(t *testing.T) {
	for _, r := range []Request{
		{URL: "/?q=\u00e4&r=%20+", Headers: map[string]string{"Host": "b.example:8080"}},
		{URL: "/\u00e4 b", Headers: map[string]string{"Host": "[2001:db8::1]"}},
		{URL: "/", Method: "PURGE", Headers: map[string]string{"x-a": "\u00e4"}},
		{URL: "/", Body: bytes.Repeat([]byte{0}, 46<<10)}, // six times as long with escapes
		{URL: "/", Body: bytes.Repeat([]byte("\"\n"), 23<<10)},
		{URL: "/", Body: bytes.Repeat([]byte{0xff}, 46<<10)},
	} {
		var got *http.Request
		var body []byte
		s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			got = r.Clone(context.Background())
		})
		r.URL = s.URL + r.URL
		task, err := r.Task("k")
		require.NoError(t, err)
		require.LessOrEqual(t, len(task.Key)+len(task.Handler)+len(task.Body), durable.MaxTask)
		require.NoError(t, call(t, newCaller(t, WithSecrets(newSecret)), r))
		require.Equal(t, string(r.Body), string(body))
		if r.hostHeader() != "" {
			require.Equal(t, r.hostHeader(), got.Host)
		}
		_, err = Verify(with(got, body), DefaultTolerance, newSecret)
		require.NoError(t, err)
	}
}

// addJitter never shortens a delay that is at most maxRetryAfter.
func TestSpread_IsNeverEarly(t *testing.T) {
	for _, d := range []time.Duration{1, time.Millisecond, time.Second, time.Hour, 24 * time.Hour, math.MaxInt64} {
		for range 100 {
			got := addJitter(d)
			d := min(d, maxRetryAfter)
			require.GreaterOrEqual(t, got, d)
			require.Less(t, got, d+d/10+10*time.Millisecond)
		}
	}
}

// Handle validates requests, because other programs may have scheduled the tasks.
func TestCaller_BrokenTasksAreDead(t *testing.T) {
	c := New()
	defer c.Close()
	for _, body := range []string{
		"", "x", `{"url":"file:///etc/passwd"}`, `{"url":"http://a.example","headers":{"tickless-token":"1"}}`,
		`{"url":"http://a.example","method":"A B"}`, `{"url":"http://a.example/?a b"}`, `{"url":"http://a.example:99999"}`,
		`{"url":"http://a.example","headers":{"a":"1","A":"2"}}`, `{"url":"http://a.example","headers":{"host":"a b"}}`,
	} {
		err := c.Handle(context.Background(), durable.Delivery{Body: []byte(body)})
		require.True(t, isDead(err), "%s: %v", body, err)
	}
}

func TestRequest_BodyStaysReadable(t *testing.T) {
	task, err := Request{URL: "http://a.example/?a&b", Body: []byte("<hello>")}.Task("k")
	require.NoError(t, err)
	require.Equal(t, `{"url":"http://a.example/?a&b","body":"<hello>"}`, string(task.Body))
}

func TestPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true,
		"64:ff9b::808:808": true, "::ffff:0:808:808": true, "2002:808:808::1": true, "172.32.0.1": true, "100.128.0.1": true,

		"127.0.0.1": false, "10.1.2.3": false, "172.31.255.255": false, "192.168.0.1": false, "169.254.169.254": false,
		"0.0.0.0": false, "0.1.2.3": false, "100.64.0.1": false, "224.0.0.1": false, "255.255.255.255": false,
		"240.0.0.1": false, "198.18.0.1": false, "::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false,
		"fd12::1": false, "ff02::1": false, "fec0::1": false, "::ffff:10.0.0.1": false, "::7f00:1": false,
		"64:ff9b::7f00:1": false, "::ffff:0:7f00:1": false, "::ffff:0:a9fe:a9fe": false, "64:ff9b::a00:1": false, "2002:7f00:1::": false, "2002:a9fe:a9fe::": false,
		"2001:0:1::": false, "2001:db8::1": false,
	} {
		require.Equal(t, want, isPublic(netip.MustParseAddr(addr)), addr)
	}
}

func TestOptions_RefuseMisuse(t *testing.T) {
	for _, f := range []func(){
		func() { WithPerHost(0) }, func() { WithTimeout(0) },
		func() { WithSecrets() }, func() { WithSecrets([]byte("short")) }, func() { WithAllowed(netip.Prefix{}) },
		func() { WithJudge(nil) },
	} {
		require.Panics(t, f)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"url":"http://a.example","method":"PUT","headers":{"A":"b"},"body":"x"}`))
	f.Add([]byte(`{"url":"http://a.example","body64":"/w=="}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			return
		}
		task, err := r.Task("k")
		if err != nil || strings.Contains(r.URL, "\ufffd") {
			return
		}
		again, err := Parse(task.Body)
		require.NoError(t, err)
		require.Equal(t, string(r.Body), string(again.Body))
		require.Equal(t, r.URL, again.URL)
		require.Equal(t, r.Method, again.Method)
	})
}

// What isPlain accepts, a server can parse.
func TestRequest_PlainCanBeSent(t *testing.T) {
	const parts = "ab/::?&=-._~19"
	rng := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		var b strings.Builder
		for range rng.IntN(n) {
			b.WriteByte(parts[rng.IntN(len(parts))])
		}
		return b.String()
	}
	sent := 0
	for range 20_000 {
		r := Request{URL: "http://" + text(6) + "a" + text(12)}
		if host := text(6); isValidHost(host) {
			r.Headers = map[string]string{"Host": host}
		}
		u, err := r.parseURL()
		if err != nil {
			continue
		}
		sent++
		require.True(t, isPlain(r.URL+r.hostHeader()))
		require.True(t, isSendable(&http.Request{URL: u, Host: r.hostHeader()}), "%+v", r)
	}
	require.Greater(t, sent, 1000)
	require.False(t, isPlain("http://a.example/a b"))
	require.False(t, isPlain("http://ä.example/"))
}
