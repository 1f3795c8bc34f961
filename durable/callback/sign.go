package callback

import (
	"bufio"
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

// signature is the HMAC-SHA256, with a secret, of nine lines and, after the last
// line's end, the body: the version v1, the time of the signature in seconds since
// 1970, the method, the host and the target that the request arrives with, and the
// headers Idempotency-Key, Tickless-Key, Tickless-Token and Tickless-Due.
func signature(secret []byte, at, method, host, target string, h http.Header, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	for _, line := range []string{
		"v1", at, method, strings.ToLower(host), target,
		h.Get(headerIdempotency), h.Get(headerKey), h.Get(headerToken), h.Get(headerDue),
	} {
		// None of them has line ends.
		io.WriteString(mac, line)
		mac.Write([]byte{'\n'})
	}
	mac.Write(body)
	return mac.Sum(nil)
}

// sign sets the header, which is t=SECONDS and v1=HEX for each secret, with
// commas between.
func sign(secrets [][]byte, now time.Time, req *http.Request, body []byte) error {
	host, target, err := arrival(req)
	if err != nil {
		return err
	}
	at := strconv.FormatInt(now.Unix(), 10)
	value := "t=" + at
	for _, s := range secrets {
		value += ",v1=" + hex.EncodeToString(signature(s, at, req.Method, host, target, req.Header, body))
	}
	req.Header.Set(headerSignature, value)
	return nil
}

// arrival returns the host and the target, which is the path with the query, that
// the receiver's server sees. Only net/http knows what it makes of a URL: it
// escapes, and writes a host in Punycode.
func arrival(req *http.Request) (host, target string, err error) {
	var wire bytes.Buffer
	bare := http.Request{Method: http.MethodGet, URL: req.URL, Host: req.Host}
	if err := bare.Write(&wire); err != nil {
		return "", "", err
	}
	got, err := http.ReadRequest(bufio.NewReaderSize(&wire, 512))
	if err != nil {
		return "", "", err
	}
	return got.Host, got.RequestURI, nil
}

// Verify is for receivers: it checks the header Tickless-Signature, which says that
// a request was signed with one of the secrets, no longer ago than the tolerance,
// by a sender whose clock is not further ahead than that. It returns the body,
// which can be read from the request once more too. The error is [ErrSignature], or
// one of reading a body, which is at most [MaxBody] long.
//
// What is signed is the method, the host, the path with the query, the time, the
// body, and the headers Idempotency-Key, Tickless-Key, Tickless-Token and
// Tickless-Due, of each of which there may be one. Other headers are not, and
// neither is the scheme. A request that was
// recorded is refused at any other host or path, and after the tolerance; within
// it, it can be sent to the same place again, which a receiver does not mind that
// remembers the Idempotency-Key.
//
// The host and the target are r.Host and r.RequestURI, as net/http's server sets
// them. Behind a proxy that changes either, set both to what the task's URL has
// before the call.
//
// Verify panics if there is no secret, one is shorter than 16 bytes, or the
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
	for _, name := range []string{headerSignature, headerIdempotency, headerKey, headerToken, headerDue} {
		if n := len(r.Header.Values(name)); n > 1 {
			return nil, fmt.Errorf("%w: the header %s is there %d times", ErrSignature, name, n)
		}
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
	target := r.RequestURI
	if target == "" && r.URL != nil { // r was not made by a server
		target = r.URL.RequestURI()
	}
	right := false
	for _, s := range secrets {
		want := signature(s, at, r.Method, r.Host, target, r.Header, body)
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
