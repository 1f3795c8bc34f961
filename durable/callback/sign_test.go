package callback

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	oldSecret = []byte("the old secret of everybody")
	newSecret = []byte("the new secret of everybody")
)

// record sends a request to a server, and returns the request and the body that
// arrived.
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
	for _, secrets := range [][][]byte{{newSecret}, {oldSecret}, {newSecret, oldSecret}, {[]byte("some other secret of somebody"), oldSecret}} {
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
	require.Equal(t, r.Header.Get(headerIdempotency), r.Header.Get(headerID))
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
	refused(set(headerID, ""))
	refused(set(headerID, "other"))
	at, value := r.Header.Get(headerTimestamp), r.Header.Get(headerSignature)
	refused(set(headerTimestamp, ""))
	refused(set(headerTimestamp, "x"))
	refused(set(headerTimestamp, "2"+at[1:]))
	refused(set(headerSignature, ""))
	refused(set(headerSignature, "v1,"))
	refused(set(headerSignature, value[:len(value)-2]))
	refused(set(headerSignature, strings.Replace(value, "v1,", "v1a,", 1)))
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
	for _, secrets := range [][][]byte{{}, {make([]byte, minSecretSize-1)}, {newSecret, nil}} {
		require.Panics(t, func() { _, _ = Verify(with(r, body), DefaultTolerance, secrets...) })
		require.Panics(t, func() { WithSecrets(secrets...) })
	}
	WithSecrets(make([]byte, minSecretSize))
	for _, tolerance := range []time.Duration{0, -1} {
		require.Panics(t, func() { _, _ = Verify(with(r, body), tolerance, newSecret) })
	}
}

// The test vector of the Standard Webhooks specification, which all its libraries use.
func TestSignature_IsThatOfStandardWebhooks(t *testing.T) {
	secret, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	require.NoError(t, err)
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)))
}
