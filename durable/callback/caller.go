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

// A Caller sends the HTTP requests of tasks. Make one with [New] and register its
// Handle, which is a [durable.Handler]. A Caller keeps connections for reuse. Any
// number of workers may share it.
type Caller struct {
	config
	// A Transport and not a Client: a Client parses the target of a redirect even if it
	// does not follow it, and returns an error if the target is not a URL.
	transport *http.Transport
	hosts     hosts
}

// New returns a Caller. It panics if an option is nil or invalid.
func New(opts ...Option) *Caller {
	c := &Caller{config: config{
		perHost: DefaultPerHost,
		timeout: DefaultTimeout,
		judge:   Judge,
	}}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("callback: New: option %d is nil", i+1))
		}
		o.apply(&c.config)
	}
	c.hosts = hosts{limit: c.perHost, m: make(map[string]*host)}
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: c.control}
	c.transport = &http.Transport{
		// No Proxy: the proxy would connect to the host, and could reach addresses that
		// control refuses.
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    c.perHost,
		MaxIdleConns:           1024,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // so that a small compressed response cannot become large
		ForceAttemptHTTP2:      true,
		// A timeout closes an HTTP/1 connection, but not an HTTP/2 connection, which
		// may be dead without an error. Pings detect that.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
	return c
}

// Close closes idle connections. It returns nil.
func (c *Caller) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// errRoom is the reason for handing back a task.
var errRoom = errors.New("callback: the host has no room")

// Handle sends the request of a task. If the host has too many requests under way,
// Handle waits for room, or hands the task back: see [WithPerHost]. It returns after
// the response, or when the time is up.
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
	// An attempt that the worker cancelled says nothing about the host.
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
	// After 101 Switching Protocols the body is the connection itself, which cancel
	// does not close.
	if _, conn := resp.Body.(io.Writer); !conn {
		said = read(resp.Body, cancel)
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
		return durable.RetryAfter(called(err), spread(after))
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
	// Because of this header, net/http repeats the request by itself if a reused
	// connection turns out to be closed before a response begins.
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

const (
	// drain is how long Handle reads the response body after the status.
	drain = time.Second
	// maxResponse is how many bytes of a response body are read. A connection with a
	// longer response is closed.
	maxResponse = 64 << 10
)

// read reads a response body up to maxResponse and returns its beginning on one line. A
// connection whose response was read completely can be reused.
func read(body io.Reader, cancel func()) string {
	late := time.AfterFunc(drain, cancel)
	defer late.Stop()
	var first [200]byte
	n, _ := io.ReadFull(body, first[:])
	_, _ = io.Copy(io.Discard, io.LimitReader(body, maxResponse-int64(n)))
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(first[:n]), ""))
	return strings.Join(strings.Fields(text), " ")
}

// hostOf returns the host and port for the limit per host.
func hostOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// shown returns the URL for error messages, without the parts that may be secret: user
// and query.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
