package callback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tickless/tickless/durable"
)

// A Caller sends the requests of tasks. Make one with [New]; its Handle is a
// [durable.Handler]. It keeps connections for reuse, and may be used by any
// number of workers at a time.
type Caller struct {
	config
	// Not a Client: that parses where a redirect leads to, although it is not followed,
	// and makes an error of what is no URL.
	transport *http.Transport
	dialer    net.Dialer // see dial
	hosts     hosts
}

// New returns a Caller. It panics if an option is nil or out of its range.
func New(opts ...Option) *Caller {
	c := &Caller{config: config{
		perHost:     DefaultPerHost,
		timeout:     DefaultTimeout,
		maxResponse: DefaultMaxResponse,
		maxRetry:    DefaultMaxRetryAfter,
		judge:       Judge,
	}}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("callback: New: option %d is nil", i+1))
		}
		o.apply(&c.config)
	}
	c.hosts = hosts{limit: c.perHost, m: make(map[string]*host)}
	c.dialer = net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	c.transport = &http.Transport{
		// No Proxy: it would be the one to connect, and to the address that
		// control is to refuse.
		DialContext:            c.dial,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    c.perHost,
		MaxIdleConns:           1024,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // what is small on the wire stays small
		ForceAttemptHTTP2:      true,
		// A call that is not answered closes a connection of HTTP/1, but not one of
		// HTTP/2, which may be dead without anybody having said so.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
	return c
}

// Close closes the connections that are kept for reuse. It returns nil.
func (c *Caller) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// errRoom is why a task is handed back.
var errRoom = errors.New("callback: the host has no room")

// Handle sends a task's request. It blocks while the host has no room, if it does
// not use too many of the worker's places already, and then until there is an
// answer or the time is up. See [WithPerHost] for what becomes of a task for which
// there is no room.
func (c *Caller) Handle(ctx context.Context, d durable.Delivery) error {
	r, err := Parse(d.Body)
	if err != nil {
		return durable.NoRetry(err)
	}
	u, err := r.check()
	if err != nil {
		return durable.NoRetry(err)
	}
	name := hostOf(u)
	h, after, ok := c.hosts.enter(ctx, name, d.Concurrency)
	if !ok {
		return durable.HandBack(fmt.Errorf("%w: %s", errRoom, u.Host), after)
	}
	begin, answered := time.Now(), false
	defer func() { c.hosts.leave(name, h, time.Since(begin), answered) }()

	called := func(err error) error { return fmt.Errorf("%s %s: %w", r.Method, shown(u), err) }
	limited, cancel := context.WithTimeoutCause(ctx, c.timeout, errSlow)
	defer cancel()
	req, err := c.request(limited, r, d)
	if err != nil {
		return durable.NoRetry(called(err))
	}
	resp, err := c.transport.RoundTrip(req)
	// What the worker itself has ended says nothing about the host.
	answered = err == nil || errors.Is(err, ErrAddress) ||
		ctx.Err() != nil && !errors.Is(context.Cause(ctx), durable.ErrTimeout)
	if err != nil {
		if ctx.Err() == nil && limited.Err() != nil {
			err = errSlow
		}
		if errors.Is(err, ErrAddress) {
			return durable.NoRetry(called(err))
		}
		return called(err)
	}
	defer resp.Body.Close()
	verdict := c.judge(resp.StatusCode)
	var said string
	// After 101 Switching Protocols the body is the connection itself, and cancel does not
	// close it.
	if _, conn := resp.Body.(io.Writer); !conn {
		said = c.read(resp.Body, cancel)
	}
	if verdict == Success {
		return nil
	}
	err = errors.New(resp.Status)
	if at := resp.Header.Get("Location"); at != "" && resp.StatusCode/100 == 3 {
		err = fmt.Errorf("%s: redirects are not followed", resp.Status)
	} else if said != "" {
		err = fmt.Errorf("%s: %s", resp.Status, said)
	}
	if verdict == Dead {
		return durable.NoRetry(called(err))
	}
	if after, ok := retryAfter(resp.Header, time.Now()); ok {
		return durable.RetryAfter(called(err), spread(min(after, c.maxRetry)))
	}
	return called(err)
}

var errSlow = errors.New("callback: no answer in time")

func (c *Caller) request(ctx context.Context, r Request, d durable.Delivery) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
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
	// net/http sends a request with this key once more by itself if a connection
	// that it had kept turns out to be closed, as long as no answer has begun.
	h.Set(headerIdempotency, d.IdempotencyKey())
	h.Set(headerKey, url.PathEscape(d.Key))
	h.Set(headerToken, strconv.FormatInt(d.Token, 10))
	h.Set(headerAttempt, strconv.Itoa(d.Attempt))
	h.Set(headerDue, d.Due.UTC().Format(time.RFC3339Nano))
	if len(c.secrets) > 0 {
		sign(c.secrets, time.Now(), h, d.IdempotencyKey(), r.Body)
	}
	return req, nil
}

// drain is how long the rest of a response may take to come.
const drain = time.Second

// read reads a response's body up to the cap and returns its beginning, in one
// line. If all came the connection can be used again.
func (c *Caller) read(body io.Reader, cancel func()) string {
	late := time.AfterFunc(drain, cancel)
	defer late.Stop()
	var first [200]byte
	n, _ := io.ReadFull(body, first[:])
	_, _ = io.Copy(io.Discard, io.LimitReader(body, max(0, c.maxResponse-int64(n))))
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(first[:n]), ""))
	return strings.Join(strings.Fields(text), " ")
}

// hostOf is what the limit per host counts by.
func hostOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// shown is a URL as errors have it: what is after the path may be secret.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
