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

// Headers of a request, beside those of the task.
const (
	headerIdempotency = "Idempotency-Key"
	headerKey         = "Tickless-Key"
	headerToken       = "Tickless-Token"
	headerAttempt     = "Tickless-Attempt"
	headerDue         = "Tickless-Due"

	// Of Standard Webhooks, with WithSecrets.
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// DefaultTolerance is how old a signature may be for [Verify], and how far ahead
// the sender's clock.
const DefaultTolerance = 5 * time.Minute

// MaxBody is the largest body that [Verify] reads, in bytes: more than a task can
// hold.
const MaxBody = 1 << 20

// minSecret is the least size of a secret, in bytes, as Standard Webhooks has it.
const minSecret = 24

// ErrSignature is returned by [Verify] for a request that was not signed with any
// of the secrets, or was changed since, or is too old.
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

// signature is what Standard Webhooks calls v1: the HMAC-SHA256 of the id, the time in
// seconds since 1970 and the body, with dots between.
func signature(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	io.WriteString(mac, id+"."+at+".")
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// sign sets the headers of Standard Webhooks, with a signature for each secret.
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

// Verify is for receivers: it checks the headers of Standard Webhooks, which say that a
// request was signed with one of the secrets, no longer ago than the tolerance, by a
// sender whose clock is not further ahead than that. It returns the body, which can be
// read from the request once more too. The error is [ErrSignature], or one of reading a
// body, which is at most [MaxBody] long.
//
// What is signed is Webhook-Id, which is the Idempotency-Key, Webhook-Timestamp and the
// body. The method, the URL and the other headers are not. A request that was recorded
// is refused after the tolerance; within it, a receiver that remembers Webhook-Id does not
// mind it.
//
// Verify panics if there is no secret, one is shorter than 24 bytes, or the tolerance is
// not positive.
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
		return nil, fmt.Errorf("%w: there is none", ErrSignature)
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
		return nil, fmt.Errorf("%w: it is of %v ago", ErrSignature, age.Truncate(time.Second))
	}
	return body, nil
}
