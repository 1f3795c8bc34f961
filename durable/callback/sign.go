package callback

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers that Handle adds to a request.
const (
	headerIdempotency = "Idempotency-Key"
	headerKey         = "Tickless-Key"
	headerToken       = "Tickless-Token"
	headerAttempt     = "Tickless-Attempt"
	headerDue         = "Tickless-Due"

	// Headers of Standard Webhooks, with WithSecrets.
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// DefaultTolerance is a tolerance for [Verify]: how old a signature may be, and how far
// ahead the sender's clock.
const DefaultTolerance = 5 * time.Minute

// MaxBody is the largest body that [Verify] reads, in bytes. A task cannot hold a body
// of this size.
const MaxBody = 1 << 20

// minSecret is the minimum length of a secret in bytes, according to Standard Webhooks.
const minSecret = 24

// ErrSignature is returned by [Verify] for a request that is not signed with any of the
// secrets, was changed after signing, or is too old.
var ErrSignature = errors.New("callback: the signature is not valid")

func checkSecrets(name string, secrets [][]byte) {
	if len(secrets) == 0 {
		panic("callback: " + name + " without a secret")
	}
	for _, s := range secrets {
		if len(s) < minSecret {
			panic(fmt.Sprintf("callback: %s: a secret has %d bytes, less than %d", name, len(s), minSecret))
		}
	}
}

// signature returns a v1 signature of Standard Webhooks: the HMAC-SHA256 of id, Unix
// time in seconds and body, joined by dots.
func signature(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	io.WriteString(mac, id+"."+at+".")
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// sign sets the headers of Standard Webhooks, with one signature for each secret.
func sign(secrets [][]byte, now time.Time, h http.Header, id string, body []byte) {
	at := strconv.FormatInt(now.Unix(), 10)
	all := make([]string, len(secrets))
	for i, s := range secrets {
		all[i] = signature(s, id, at, body)
	}
	h.Set(headerID, id)
	h.Set(headerTimestamp, at)
	h.Set(headerSignature, strings.Join(all, " "))
}

// Verify is for receivers. It checks that a request was signed with one of the secrets,
// according to Standard Webhooks, and that the signature is no older than the tolerance
// and no further in the future. It returns the body and restores r.Body, so that the
// body can be read again. The error is [ErrSignature], or an error of reading the body,
// which may have at most [MaxBody] bytes.
//
// The signature covers Webhook-Id, which equals the Idempotency-Key, Webhook-Timestamp
// and the body, but not the method, the URL and the other headers. Verify refuses a
// recorded request after the tolerance has passed. Until then, a receiver can detect it
// by its Webhook-Id.
//
// Verify panics if there are no secrets, if one is shorter than 24 bytes, or if the
// tolerance is not positive.
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
	id, at := r.Header.Get(headerID), r.Header.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || id == "" || r.Header.Get(headerSignature) == "" {
		return nil, fmt.Errorf("%w: the request is not signed", ErrSignature)
	}
	right := false
	for given := range strings.FieldsSeq(r.Header.Get(headerSignature)) {
		for _, s := range secrets {
			right = right || hmac.Equal([]byte(given), []byte(signature(s, id, at, body)))
		}
	}
	if !right {
		return nil, ErrSignature
	}
	if age := now.Sub(time.Unix(seconds, 0)); age.Abs() > tolerance {
		return nil, fmt.Errorf("%w: signed %v ago", ErrSignature, age.Truncate(time.Second))
	}
	return body, nil
}
