package callback

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strconv"
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

// What anybody can send must not cost more than a request of somebody who knows a secret.
func TestVerify_CostOfForgedHeaders(t *testing.T) {
	r, body := record(t, WithSecrets(newSecret))
	valid := r.Header.Get(headerSignature)
	other := signature(oldSecret, "id", "0", nil)
	request := func(signatures string) *http.Request {
		r := with(r, body)
		r.Header.Set(headerSignature, signatures)
		return r
	}
	_, err := Verify(request(strings.Repeat(other+" ", 9)+valid), DefaultTolerance, newSecret)
	require.NoError(t, err)

	// Nothing of the body is read if the headers cannot be valid.
	for name, header := range map[string][2]string{
		"eleven signatures": {headerSignature, strings.Repeat(other+" ", 10) + valid},
		"no v1 signature":   {headerSignature, strings.Repeat("v1a,"+other+" ", 10)},
		"spaces":            {headerSignature, strings.Repeat(" ", 1<<20)},
		"one long word":     {headerSignature, "v1," + strings.Repeat("A", 1<<20)},
		"no time":           {headerTimestamp, "now"},
		"the first second":  {headerTimestamp, "-9223372036854775808"},
		"the last second":   {headerTimestamp, "9223372036854775807"},
		"yesterday":         {headerTimestamp, strconv.FormatInt(time.Now().Add(-24*time.Hour).Unix(), 10)},
	} {
		r := request(valid)
		r.Header.Set(header[0], header[1])
		unread := strings.NewReader("hello")
		r.Body = io.NopCloser(unread)
		_, err := Verify(r, DefaultTolerance, newSecret)
		require.ErrorIs(t, err, ErrSignature, name)
		require.Equal(t, 5, unread.Len(), name)
	}

	// The body is hashed once for each secret, however many signatures there are.
	allocations := func(r *http.Request) float64 {
		return testing.AllocsPerRun(10, func() { _, _ = Verify(r, DefaultTolerance, oldSecret) })
	}
	require.Equal(t, allocations(request(other+strings.Repeat(" v1,", 9))), allocations(request(other+strings.Repeat(" "+other[:10], 9))))
	require.InDelta(t, allocations(request(other)), allocations(request(strings.Repeat(other+" ", 10))), 5, "only the list of signatures grows")
}

func FuzzVerify(f *testing.F) {
	now := time.Unix(1614265330, 0)
	sig := func(secret []byte) string { return signature(secret, "id", "1614265330", []byte("body")) }
	f.Add("id", "1614265330", sig(newSecret), "body")
	f.Add("id", "1614265330", "v1a,x "+sig(oldSecret)+"\t"+sig(newSecret), "body")
	f.Add("id", "1614265330", strings.Repeat("v1, ", 10)+sig(newSecret), "body")
	f.Add("id", "-9223372036854775808", "v1,\u00a0"+strings.Repeat("\xff", 44), "")
	f.Add("", "+1", strings.Repeat(",", 1000), "\x00")
	f.Fuzz(func(t *testing.T, id, timestamp, signatures, body string) {
		r := &http.Request{Header: http.Header{headerID: {id}, headerTimestamp: {timestamp}, headerSignature: {signatures}}, Body: io.NopCloser(strings.NewReader(body))}
		got, err := verify(r, now, time.Minute, [][]byte{oldSecret, newSecret})
		words := strings.Fields(signatures)
		want := id != "" && len(words) <= 10 && (slices.Contains(words, signature(oldSecret, id, timestamp, []byte(body))) ||
			slices.Contains(words, signature(newSecret, id, timestamp, []byte(body))))
		if want && err != nil {
			if seconds, bad := strconv.ParseInt(timestamp, 10, 64); bad == nil && now.Sub(time.Unix(seconds, 0)).Abs() <= time.Minute {
				t.Fatalf("a valid signature was refused: %v", err)
			}
		}
		if err == nil && (!want || string(got) != body) {
			t.Fatalf("accepted: id %q, time %q, signatures %q", id, timestamp, signatures)
		}
	})
}
