package callback

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of a request, beside those of the task.
const (
	headerIdempotency = "Idempotency-Key"
	headerKey         = "Tickless-Key"
	headerToken       = "Tickless-Token"
	headerAttempt     = "Tickless-Attempt"
	headerDue         = "Tickless-Due"
	headerSignature   = "Tickless-Signature"
)

// DefaultTolerance is how old a signature may be for [Verify], and how far ahead
// the sender's clock.
const DefaultTolerance = 5 * time.Minute

// MaxBody is the largest body that [Verify] reads, in bytes: more than a task can
// hold.
const MaxBody = 1 << 20

// ErrSignature is returned by [Verify] for a request that was not signed with any
// of the secrets, or was changed since, or is too old.
var ErrSignature = errors.New("callback: the signature is not valid")

func checkSecrets(name string, secrets [][]byte) {
	if len(secrets) == 0 {
		panic("callback: " + name + " without a secret")
	}
	for _, s := range secrets {
		if len(s) < 16 {
			panic("callback: " + name + ": a secret has less than 16 bytes")
		}
	}
}

// signature is the HMAC-SHA256, with a secret, of seven lines: the version v1, the
// time of the signature in seconds since 1970, the method, and the headers
// Idempotency-Key, Tickless-Key, Tickless-Token and Tickless-Due; and, after the
// last line's end, the body.
func signature(secret []byte, at string, method string, h http.Header, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	for _, line := range []string{
		"v1", at, method, h.Get(headerIdempotency), h.Get(headerKey), h.Get(headerToken), h.Get(headerDue),
	} {
		// A header's value has no line ends.
		io.WriteString(mac, line)
		mac.Write([]byte{'\n'})
	}
	mac.Write(body)
	return mac.Sum(nil)
}

// sign sets the header, which is t=SECONDS and v1=HEX for each secret, with
// commas between.
func sign(secrets [][]byte, now time.Time, method string, h http.Header, body []byte) {
	at := strconv.FormatInt(now.Unix(), 10)
	value := "t=" + at
	for _, s := range secrets {
		value += ",v1=" + hex.EncodeToString(signature(s, at, method, h, body))
	}
	h.Set(headerSignature, value)
}

// Verify is for receivers: it checks that a request was signed with one of the
// secrets, no longer ago than the tolerance, by a sender whose clock is not
// further ahead than that, and returns the body, which can be read from the
// request once more too. The error is [ErrSignature], or one of reading a body,
// which is at most [MaxBody] long.
//
// Who records such a request can send it again within the tolerance; a receiver
// that remembers the Idempotency-Key, or the largest Tickless-Token of each
// Tickless-Key, does not mind. All three are signed. It panics if there is no
// secret, one is shorter than 16 bytes, or the tolerance is not positive.
func Verify(r *http.Request, tolerance time.Duration, secrets ...[]byte) ([]byte, error) {
	return verify(r, time.Now(), tolerance, secrets)
}

func verify(r *http.Request, now time.Time, tolerance time.Duration, secrets [][]byte) ([]byte, error) {
	checkSecrets("Verify", secrets)
	positive("Verify: tolerance", tolerance)
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxBody)); err != nil {
			return nil, fmt.Errorf("callback: reading the body: %w", err)
		}
		r.Body.Close()
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	var at string
	var given [][]byte
	for field := range strings.SplitSeq(r.Header.Get(headerSignature), ",") {
		switch k, v, _ := strings.Cut(field, "="); k {
		case "t":
			at = v
		case "v1":
			if b, err := hex.DecodeString(v); err == nil {
				given = append(given, b)
			}
		}
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || len(given) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrSignature)
	}
	right := false
	for _, s := range secrets {
		want := signature(s, at, r.Method, r.Header, body)
		for _, g := range given {
			right = right || hmac.Equal(g, want)
		}
	}
	if !right {
		return nil, ErrSignature
	}
	if age := now.Sub(time.Unix(seconds, 0)); age.Abs() > tolerance {
		return nil, fmt.Errorf("%w: it is of %v ago", ErrSignature, age.Truncate(time.Second))
	}
	return body, nil
}
