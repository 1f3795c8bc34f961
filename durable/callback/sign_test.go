package callback

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	oldSecret = []byte("the old secret of all")
	newSecret = []byte("the new secret of all")
)

// record returns a request as it arrived, and its body.
func record(t *testing.T, opts ...Option) (*http.Request, []byte) {
	var got *http.Request
	var body []byte
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		got = r
	})
	require.NoError(t, call(t, newCaller(t, opts...), Request{URL: s.URL + "/x", Body: []byte("hello")}))
	return got, body
}

func with(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

func TestVerify(t *testing.T) {
	r, body := record(t, WithSecrets(newSecret, oldSecret))
	for _, secrets := range [][][]byte{{newSecret}, {oldSecret}, {newSecret, oldSecret}, {[]byte("some other secret"), oldSecret}} {
		r := with(r, body)
		got, err := Verify(r, DefaultTolerance, secrets...)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got))
		again, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, "hello", string(again), "the body can be read once more")
	}
}

func TestVerify_Tampered(t *testing.T) {
	r, body := record(t, WithSecrets(newSecret))
	for _, name := range []string{"Tickless-Signature", "Idempotency-Key", "Tickless-Key", "Tickless-Token", "Tickless-Due"} {
		for _, second := range []string{r.Header.Get(name), "other"} {
			r := with(r, body)
			r.Header.Add(name, second)
			_, err := Verify(r, DefaultTolerance, newSecret)
			require.ErrorIs(t, err, ErrSignature)
			require.ErrorContains(t, err, name+" is there 2 times")
		}
	}
	refused := func(change func(r *http.Request)) {
		t.Helper()
		r := with(r, body)
		change(r)
		_, err := Verify(r, DefaultTolerance, newSecret)
		require.ErrorIs(t, err, ErrSignature)
	}
	set := func(k, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(k, v) } }
	refused(func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("hellO")) })
	refused(func(r *http.Request) { r.Body = nil })
	refused(func(r *http.Request) { r.Method = "PUT" })
	refused(func(r *http.Request) { r.Host = "other.example" })
	refused(func(r *http.Request) { r.RequestURI = "/y" })
	refused(func(r *http.Request) { r.RequestURI = "/x?more=1" })
	refused(set(headerIdempotency, "other"))
	refused(set(headerToken, "18"))
	refused(set(headerKey, "other"))
	refused(set(headerDue, "2025-09-25T14:59:05.678902Z"))
	value := r.Header.Get(headerSignature)
	refused(set(headerSignature, ""))
	refused(set(headerSignature, "t=,v1="))
	refused(set(headerSignature, strings.Split(value, ",")[0]))
	refused(set(headerSignature, value[:len(value)-2]))
	refused(set(headerSignature, strings.Replace(value, "t=1", "t=2", 1)))
	refused(set(headerSignature, strings.Replace(value, "v1=", "v0=", 1)))
	_, err := Verify(with(r, body), DefaultTolerance, oldSecret)
	require.ErrorIs(t, err, ErrSignature)
}

func TestVerify_Age(t *testing.T) {
	r, body := record(t, WithSecrets(newSecret))
	now := time.Now()
	for _, d := range []time.Duration{-4 * time.Minute, 0, 4 * time.Minute} {
		_, err := verify(with(r, body), now.Add(d), 5*time.Minute, [][]byte{newSecret})
		require.NoError(t, err)
	}
	for _, d := range []time.Duration{-6 * time.Minute, 6 * time.Minute} {
		_, err := verify(with(r, body), now.Add(d), 5*time.Minute, [][]byte{newSecret})
		require.ErrorIs(t, err, ErrSignature)
	}
}

func TestVerify_BodyHasALimit(t *testing.T) {
	r, _ := record(t, WithSecrets(newSecret))
	_, err := Verify(with(r, make([]byte, MaxBody+1)), DefaultTolerance, newSecret)
	var tooLarge *http.MaxBytesError
	require.ErrorAs(t, err, &tooLarge)
}

func TestVerify_RefusesMisuse(t *testing.T) {
	r, body := record(t, WithSecrets(newSecret))
	for _, secrets := range [][][]byte{{}, {make([]byte, 15)}, {newSecret, nil}} {
		require.Panics(t, func() { _, _ = Verify(with(r, body), DefaultTolerance, secrets...) })
		require.Panics(t, func() { WithSecrets(secrets...) })
	}
	WithSecrets(make([]byte, 16))
	for _, tolerance := range []time.Duration{0, -1} {
		require.Panics(t, func() { _, _ = Verify(with(r, body), tolerance, newSecret) })
	}
}

// The signature is written down for receivers in other languages, so it must stay
// what it is.
func TestSignature_IsWhatTheDocumentationSays(t *testing.T) {
	h := http.Header{}
	h.Set(headerIdempotency, "00ff-1")
	h.Set(headerKey, "order-17")
	h.Set(headerToken, "5")
	h.Set(headerDue, "2025-09-25T14:59:05.678901Z")
	// printf 'v1\n1758812345\nPOST\nshop.example:8443\n/a%%20b?c=d\n00ff-1\norder-17\n5\n2025-09-25T14:59:05.678901Z\nhello' |
	//	openssl dgst -sha256 -hmac 'the old secret of all'
	require.Equal(t, "837a13902b4091952e8195dcc49582dcf19e41734298bbc4dbe3ae1ae8e31332",
		hex.EncodeToString(signature(oldSecret, "1758812345", "POST", "Shop.example:8443", "/a%20b?c=d", h, []byte("hello"))))
}

// A receiver cannot use what it was sent at another endpoint that has the same
// secret, neither at its own host nor elsewhere.
func TestVerify_RefusesAReplayToAnotherEndpoint(t *testing.T) {
	verdicts := make(chan error, 1)
	var sent *http.Request
	check := func(_ http.ResponseWriter, r *http.Request) {
		if sent == nil {
			sent = r.Clone(context.Background())
		}
		_, err := Verify(r, DefaultTolerance, newSecret)
		verdicts <- err
	}
	here, there := serve(t, check), serve(t, check)
	c := newCaller(t, WithSecrets(newSecret))
	require.NoError(t, call(t, c, Request{URL: here.URL + "/orders/cancel?id=1", Body: []byte("hello")}))
	require.NoError(t, <-verdicts)
	replay := func(to string) error {
		t.Helper()
		r, err := http.NewRequest(sent.Method, to, strings.NewReader("hello"))
		require.NoError(t, err)
		r.Header = sent.Header
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		resp.Body.Close()
		return <-verdicts
	}
	require.NoError(t, replay(here.URL+"/orders/cancel?id=1"), "the same place")
	require.ErrorIs(t, replay(here.URL+"/orders/delete?id=1"), ErrSignature)
	require.ErrorIs(t, replay(here.URL+"/orders/cancel?id=2"), ErrSignature)
	require.ErrorIs(t, replay(here.URL+"/orders/cancel"), ErrSignature)
	require.ErrorIs(t, replay(there.URL+"/orders/cancel?id=1"), ErrSignature)
	http.DefaultClient.CloseIdleConnections()
}

// What is signed is what arrives, whatever net/http makes of a URL on the way.
func TestVerify_OfUnusualURLs(t *testing.T) {
	verdicts := make(chan error, 1)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := Verify(r, DefaultTolerance, newSecret)
		verdicts <- err
	})
	c := newCaller(t, WithSecrets(newSecret))
	for _, path := range []string{"", "/", "?", "?a=b%20c+d", "/a b/ü?ä=%20&b=+", "//x", "/a%2Fb;c?d#e", "/" + strings.Repeat("x", 3000)} {
		for _, host := range []string{"", "Shop.Example:443", "bücher.example"} {
			r := Request{URL: s.URL + path}
			if host != "" {
				r.Headers = map[string]string{"Host": host}
			}
			require.NoError(t, call(t, c, r), "%s %s", path, host)
			require.NoError(t, <-verdicts, "%s %s", path, host)
		}
	}
}
