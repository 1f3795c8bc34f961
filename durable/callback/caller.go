package callback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/tickless/tickless/durable"
)

// A Caller sends the HTTP requests of tasks. Make one with [New], and register its
// Handle method with a worker. Several workers may share a Caller.
type Caller struct {
	config
	// Not an http.Client: if a redirect's target is not a valid URL, a Client returns
	// an error instead of the status.
	transport *http.Transport
	limiter   hostLimiter
}

// New returns a Caller. It panics if an option is nil or invalid.
func New(opts ...Option) *Caller {
	c := &Caller{config: config{
		maxPerHost: DefaultPerHost,
		timeout:    DefaultTimeout,
		judge:      Judge,
	}}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("callback: New: option %d is nil", i+1))
		}
		o.apply(&c.config)
	}
	c.limiter = hostLimiter{maxLimit: c.maxPerHost, hostByName: make(map[string]*host)}
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: c.checkAddress}
	c.transport = &http.Transport{
		// There is no Proxy, because checkAddress would not see the addresses to which
		// a proxy connects.
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    c.maxPerHost,
		MaxIdleConns:           1024,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // so that a small compressed response cannot become large
		ForceAttemptHTTP2:      true,
		// Pings detect a dead HTTP/2 connection. The timeout of a request does not
		// close it.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
	return c
}

// Close closes idle connections. It returns nil.
func (c *Caller) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// errHostBusy is the reason for handing a task back to the store.
var errHostBusy = errors.New("callback: too many requests to the host")

// Handle sends a task's request. It returns nil if the response is a [Success]. If too
// many requests to the host are under way, Handle waits, or hands the task back to the
// store: see [WithPerHost].
func (c *Caller) Handle(ctx context.Context, d durable.Delivery) error {
	r, err := Parse(d.Body)
	if err != nil {
		return durable.NoRetry(err)
	}
	u, err := r.check()
	if err != nil {
		return durable.NoRetry(err)
	}
	hostName := hostAndPort(u)
	h, delay, ok := c.limiter.beginRequest(ctx, hostName, d.Concurrency)
	if !ok {
		return durable.HandBack(fmt.Errorf("%w: %s", errHostBusy, u.Host), delay)
	}
	began, answered := time.Now(), false
	result := Result{}
	defer func() {
		result.Duration = time.Since(began)
		c.limiter.endRequest(hostName, h, result.Duration, answered)
		_ = d.SetResult(result.encode()) // it is short enough
	}()

	wrapError := func(err error) error { return fmt.Errorf("%s %s: %w", r.Method, redactedURL(u), err) }
	// ctx ends after the task's own timeout.
	reqCtx, cancel := context.WithTimeoutCause(ctx, max(c.timeout, d.Timeout), errTimeout)
	defer cancel()
	req, err := c.newRequest(reqCtx, r, d)
	if err != nil {
		return durable.NoRetry(wrapError(err))
	}
	resp, err := c.roundTrip(req)
	// An attempt that the worker cancelled counts as answered: it says nothing about
	// the host.
	answered = err == nil || errors.Is(err, ErrAddress) ||
		ctx.Err() != nil && !errors.Is(context.Cause(ctx), durable.ErrTimeout)
	if err != nil {
		if ctx.Err() == nil && reqCtx.Err() != nil {
			err = errTimeout
		}
		if errors.Is(err, ErrAddress) {
			return durable.NoRetry(wrapError(err))
		}
		return wrapError(err)
	}
	defer resp.Body.Close()
	verdict := c.judge(resp.StatusCode)
	result.Status = resp.StatusCode
	// After 101 Switching Protocols, the body is the open connection: do not read it.
	if _, isConn := resp.Body.(io.Writer); !isConn {
		result.Body = readBodyStart(resp.Body, cancel)
	}
	bodyText := oneLine(result.Body)
	if verdict == Success {
		return nil
	}
	text := oneLine([]byte(resp.Status))
	if location := resp.Header.Get("Location"); location != "" && resp.StatusCode/100 == 3 {
		text += ": redirects are not followed"
	} else if bodyText != "" {
		text += ": " + bodyText
	}
	err = &StatusError{resp.StatusCode, text}
	if verdict == Dead {
		return durable.NoRetry(wrapError(err))
	}
	if delay, ok := retryAfter(resp.Header, time.Now()); ok {
		return durable.RetryAfter(wrapError(err), addJitter(delay))
	}
	return wrapError(err)
}

// A StatusError is the error of an attempt whose response is not a [Success].
type StatusError struct {
	Code int    // the response's status
	text string // the status and the beginning of the body
}

func (e *StatusError) Error() string { return e.text }

var errTimeout = errors.New("callback: no answer in time")

func (c *Caller) newRequest(ctx context.Context, r Request, d durable.Delivery) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	req.URL.RawQuery = escapeQuery(req.URL.RawQuery)
	h := req.Header
	h.Set("User-Agent", "Tickless")
	for k, v := range r.Headers {
		if strings.EqualFold(k, "Host") {
			req.Host = v
			continue
		}
		h.Set(k, v)
	}
	if u := req.URL.User; u != nil && h.Get("Authorization") == "" {
		password, _ := u.Password()
		req.SetBasicAuth(u.Username(), password)
	}
	h.Set(headerIdempotency, d.IdempotencyKey())
	h.Set(headerKey, url.PathEscape(d.Key))
	h.Set(headerToken, strconv.FormatInt(d.Token, 10))
	h.Set(headerAttempt, strconv.Itoa(d.Attempt))
	h.Set(headerDue, d.Due.UTC().Format(time.RFC3339Nano))
	if d.LastAttempt {
		h.Set(headerLastAttempt, "true")
	}
	if e := d.Ended; e != nil {
		h.Set(headerEnded, "failed")
		if e.Done {
			h.Set(headerEnded, "done")
		}
		h.Set(headerEndedDue, e.Due.UTC().Format(time.RFC3339Nano))
		if e.Error != "" {
			h.Set(headerEndedError, url.PathEscape(e.Error))
		}
	}
	if len(c.secrets) > 0 {
		sign(c.secrets, time.Now(), h, d.IdempotencyKey(), r.Body)
	}
	// With a canonical name, net/http would repeat the request on every kept connection that
	// ends without an answer.
	for _, name := range []string{headerIdempotency, "X-Idempotency-Key"} {
		if v, ok := h[name]; ok {
			delete(h, name)
			h[strings.ToLower(name)] = v
		}
	}
	return req, nil
}

// escapeQuery escapes what is not ASCII, as net/http escapes paths.
func escapeQuery(q string) string {
	var b strings.Builder
	for i := range len(q) {
		if q[i] < 0x80 {
			b.WriteByte(q[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", q[i])
		}
	}
	return b.String()
}

// roundTrip sends a request. It sends it once more if a kept connection ends without an
// answer, as it does when the receiver closes it meanwhile.
func (c *Caller) roundTrip(req *http.Request) (*http.Response, error) {
	var wasKept, isAnswered atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn:              func(x httptrace.GotConnInfo) { wasKept.Store(x.Reused) },
		GotFirstResponseByte: func() { isAnswered.Store(true) },
	})
	again := req.Clone(req.Context())
	resp, err := c.transport.RoundTrip(req.WithContext(ctx))
	if err == nil || !wasKept.Load() || isAnswered.Load() || ctx.Err() != nil {
		return resp, err
	}
	if req.GetBody != nil {
		again.Body, _ = req.GetBody()
	}
	return c.transport.RoundTrip(again)
}

const (
	// bodyTimeout is how long Handle reads a response body.
	bodyTimeout = time.Second
	// maxBody is how many bytes of a response body are read. If the body is longer, the
	// connection is closed.
	maxBody = 64 << 10
)

// readBodyStart returns the first MaxAnswer bytes of a response body. It reads up to maxBody
// bytes, so that the connection can be reused. If that takes longer than bodyTimeout, it
// calls cancel.
func readBodyStart(body io.Reader, cancel func()) []byte {
	timer := time.AfterFunc(bodyTimeout, cancel)
	defer timer.Stop()
	start := make([]byte, MaxAnswer)
	n, _ := io.ReadFull(body, start)
	_, _ = io.Copy(io.Discard, io.LimitReader(body, maxBody-int64(n)))
	return start[:n]
}

// oneLine returns the first 200 bytes of a text as one line without control characters.
func oneLine(b []byte) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(b[:min(len(b), 200)]), ""))
	return strings.Join(strings.Fields(text), " ")
}

// hostAndPort returns the URL's host and port. Each pair has its own limit of requests.
func hostAndPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// redactedURL returns the URL for error messages, without user and query, which may be
// secret.
func redactedURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
