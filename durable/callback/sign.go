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
	headerLastAttempt = "Tickless-Last-Attempt"
	headerEnded       = "Tickless-Ended"
	headerEndedDue    = "Tickless-Ended-Due"
	headerEndedError  = "Tickless-Ended-Error"

	// Headers of Standard Webhooks, for WithSecrets.
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// DefaultTolerance is a tolerance for [Verify] that suits most receivers: how much the
// time of a signature may differ from the receiver's clock.
const DefaultTolerance = 5 * time.Minute

// MaxBody is the largest body that [Verify] reads, in bytes. A task cannot hold a body
// of this size.
const MaxBody = 1 << 20

// minSecretSize is the minimum length of a secret in bytes, according to Standard Webhooks.
const minSecretSize = 24

// ErrSignature is the error of [Verify] if the signature is missing, wrong or too old.
var ErrSignature = errors.New("callback: the signature is not valid")

func checkSecrets(name string, secrets [][]byte) {
	if len(secrets) == 0 {
		panic("callback: " + name + ": there is no secret")
	}
	for _, s := range secrets {
		if len(s) < minSecretSize {
			panic(fmt.Sprintf("callback: %s: a secret has %d bytes, less than %d", name, len(s), minSecretSize))
		}
	}
}

// signature returns a v1 signature of Standard Webhooks: the HMAC-SHA256 of id, Unix
// time in seconds and body, joined by dots.
func signature(secret []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	io.WriteString(mac, id+"."+timestamp+".")
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// sign sets the headers of Standard Webhooks, with one signature for each secret.
func sign(secrets [][]byte, now time.Time, h http.Header, id string, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		signatures[i] = signature(s, id, timestamp, body)
	}
	h.Set(headerID, id)
	h.Set(headerTimestamp, timestamp)
	h.Set(headerSignature, strings.Join(signatures, " "))
}

// Verify checks the signature of a received request, according to Standard Webhooks. The
// signature's time may differ from the present by at most the tolerance. Verify returns
// the body, and r.Body can be read again. The error is [ErrSignature], or an error of
// reading the body, which may have at most [MaxBody] bytes.
//
// Verify reads the body only if the headers may be valid: the time is within the
// tolerance, and there are one to ten signatures. Its cost is one HMAC of the body for each
// secret.
//
// The signature covers the body, Webhook-Id and Webhook-Timestamp, but neither the URL
// nor other headers. Until the tolerance has passed, anybody can send a recorded request
// again. The copy has the same Webhook-Id.
//
// Verify panics if there are no secrets, if a secret has fewer than 24 bytes, or if the
// tolerance is not positive.
func Verify(r *http.Request, tolerance time.Duration, secrets ...[]byte) ([]byte, error) {
	return verify(r, time.Now(), tolerance, secrets)
}

func verify(r *http.Request, now time.Time, tolerance time.Duration, secrets [][]byte) ([]byte, error) {
	checkSecrets("Verify", secrets)
	mustBePositive("Verify: tolerance", tolerance)
	id, timestamp := r.Header.Get(headerID), r.Header.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" {
		return nil, fmt.Errorf("%w: the request is not signed", ErrSignature)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age.Abs() > tolerance {
		return nil, fmt.Errorf("%w: signed %v ago", ErrSignature, age.Truncate(time.Second))
	}
	received, err := parseSignatures(r.Header.Get(headerSignature))
	if err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		if body, err = io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxBody)); err != nil {
			return nil, fmt.Errorf("callback: reading the body: %w", err)
		}
		r.Body.Close()
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	for _, s := range secrets {
		want := []byte(signature(s, id, timestamp, body))
		for _, got := range received {
			if hmac.Equal([]byte(got), want) {
				return body, nil
			}
		}
	}
	return nil, ErrSignature
}

// maxSignatures is how many signatures a request may have: one for each secret of the
// sender, who has two while a secret is replaced.
const maxSignatures = 10

// signatureSize is the length of a v1 signature.
var signatureSize = len("v1,") + base64.StdEncoding.EncodedLen(sha256.Size)

// parseSignatures returns the v1 signatures of a header Webhook-Signature. Signatures of
// other versions are left out.
func parseSignatures(header string) (v1 []string, err error) {
	n := 0
	for sig := range strings.FieldsSeq(header) {
		if n++; n > maxSignatures {
			return nil, fmt.Errorf("%w: the request has more than %d signatures", ErrSignature, maxSignatures)
		}
		if strings.HasPrefix(sig, "v1,") && len(sig) == signatureSize {
			v1 = append(v1, sig)
		}
	}
	if len(v1) == 0 {
		return nil, fmt.Errorf("%w: the request has no v1 signature", ErrSignature)
	}
	return v1, nil
}
