package callback

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tickless/tickless/durable"
)

// Name is the handler's name in tasks made by [Request.Task].
const Name = "http"

// ErrInvalid is the error for a request that can never be sent.
var ErrInvalid = errors.New("callback: invalid request")

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// A Request is the HTTP request to send when a task is due.
type Request struct {
	URL     string            // http or https, with a host; special characters must be escaped
	Method  string            // in upper case; POST if it is empty; not CONNECT
	Headers map[string]string // Host sets the request's host; headers that Handle sets are not allowed
	Body    []byte
}

// encodedRequest is the JSON of a Request in a task's body. Bytes replaces Body if the
// request's body is not UTF-8, or too long as a JSON string.
type encodedRequest struct {
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Bytes   []byte            `json:"body64,omitempty"` // base64
}

// Task returns a task that sends the request. The caller may set other fields of the
// task. The error is [ErrInvalid] if the request can never be sent, or if its JSON takes
// more than [durable.MaxTask] bytes.
func (r Request) Task(key string) (durable.Task, error) {
	if _, err := r.check(); err != nil {
		return durable.Task{}, err
	}
	if r.Method != strings.ToUpper(r.Method) { // not in check: what is stored already is sent
		return durable.Task{}, invalidf("the method %q must be in upper case", r.Method)
	}
	w := encodedRequest{URL: r.URL, Method: r.Method, Headers: r.Headers}
	if utf8.Valid(r.Body) {
		w.Body = string(r.Body)
	} else {
		w.Bytes = r.Body
	}
	const maxSize = durable.MaxTask - len(Name)
	body, err := encodeJSON(w)
	if err == nil && len(key)+len(body) > maxSize && w.Body != "" {
		w.Body, w.Bytes = "", r.Body
		body, err = encodeJSON(w)
	}
	switch {
	case err != nil:
		return durable.Task{}, invalidf("%v", err)
	case len(key)+len(body) > maxSize:
		return durable.Task{}, invalidf("the key and the encoded request have %d bytes, more than %d", len(key)+len(body), maxSize)
	}
	return durable.Task{Key: key, Handler: Name, Body: body}, nil
}

func encodeJSON(w encodedRequest) ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	err := enc.Encode(w)
	return bytes.TrimSpace(body.Bytes()), err
}

// Parse returns the request in a task's body. It is the reverse of [Request.Task].
func Parse(body []byte) (Request, error) {
	var w encodedRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return Request{}, invalidf("the task's body was not made by Request.Task: %v", err)
	}
	r := Request{URL: w.URL, Method: w.Method, Headers: w.Headers, Body: w.Bytes}
	if len(r.Body) == 0 && w.Body != "" {
		r.Body = []byte(w.Body)
	}
	if r.Method == "" {
		r.Method = http.MethodPost
	}
	return r, nil
}

// check returns the parsed URL, or an error if the request can never be sent.
func (r Request) check() (*url.URL, error) {
	u, err := r.parseURL()
	if err != nil {
		return nil, err
	}
	if r.Method != "" && !isToken(r.Method) || r.Method == http.MethodConnect {
		return nil, invalidf("the method %q is not allowed", r.Method)
	}
	seenNames := make(map[string]bool, len(r.Headers))
	for k, v := range r.Headers {
		if err := checkHeader(k, v); err != nil {
			return nil, err
		}
		name := textproto.CanonicalMIMEHeaderKey(k)
		if seenNames[name] {
			return nil, invalidf("the header %s is set more than once", name)
		}
		seenNames[name] = true
	}
	if host := r.hostHeader(); !isPlain(r.URL+host) && !isSendable(&http.Request{URL: u, Host: host}) {
		return nil, invalidf("the URL %q or the Host header cannot be sent: special characters must be escaped", redactedURL(u))
	}
	return u, nil
}

// isPlain reports whether a URL has only characters for which isSendable needs no try, which
// costs as much as all other checks.
func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~/:?=&", r)
	})
}

// isSendable reports whether a server can parse the URL and the host as net/http sends
// them.
func isSendable(req *http.Request) bool {
	var sent bytes.Buffer
	if req.Write(&sent) != nil {
		return false
	}
	parsed, err := http.ReadRequest(bufio.NewReaderSize(&sent, 512))
	return err == nil && parsed.Host != ""
}

// hostHeader returns the value of the Host header, or "".
func (r Request) hostHeader() string {
	for k, v := range r.Headers {
		if strings.EqualFold(k, "Host") {
			return v
		}
	}
	return ""
}

func (r Request) parseURL() (*url.URL, error) {
	u, err := url.Parse(r.URL)
	if err == nil && (!hasValidPort(u) || u.Scheme != "http" && u.Scheme != "https") && strings.Contains(u.Path+u.Opaque, "@") {
		err = errPathHasAt
	}
	switch {
	case err != nil:
		return nil, invalidf("the URL cannot be parsed: %v", redactedError(r.URL, err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, invalidf("the URL %q is neither http nor https", redactedURL(u))
	case u.Hostname() == "":
		return nil, invalidf("the URL %q has no host", redactedURL(u))
	case !hasValidPort(u):
		return nil, invalidf("the URL %q has a port that is not from 1 to 65535", redactedURL(u))
	case !utf8.ValidString(r.URL):
		return nil, invalidf("the URL %q is not UTF-8", redactedURL(u))
	}
	return u, nil
}

// errPathHasAt is the error for a URL whose password probably contains a slash: the
// rest of the password is then in the path.
var errPathHasAt = errors.New("the path contains an @")

// redactedError returns an error without secret parts of the URL. If the URL contains an
// @, it returns a general error, because err may quote a part of the password.
func redactedError(raw string, err error) error {
	if strings.Contains(raw, "@") {
		return errors.New("in a user name or a password, write / as %2F, ? as %3F, # as %23 and @ as %40")
	}
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		return urlErr.Err
	}
	return err
}

func hasValidPort(u *url.URL) bool {
	if u.Port() == "" {
		return true
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

// isReserved reports whether this package or net/http sets the header itself.
func isReserved(name string) bool {
	switch name = textproto.CanonicalMIMEHeaderKey(name); name {
	case headerIdempotency, "Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade":
		return true
	}
	return strings.HasPrefix(name, "Tickless-")
}

func checkHeader(name, value string) error {
	isControl := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	switch {
	case !isToken(name):
		return invalidf("the header name %q is not allowed", name)
	case isReserved(name):
		return invalidf("the header %s is set by this package", name)
	case strings.ContainsFunc(value, isControl):
		return invalidf("the value of the header %s contains a control character", name)
	case !utf8.ValidString(value):
		return invalidf("the value of the header %s is not UTF-8", name)
	case strings.EqualFold(name, "Host") && !isValidHost(value):
		return invalidf("the header Host is %q, not a name or an address with an optional port", value)
	}
	return nil
}

func isValidHost(s string) bool {
	u, err := url.Parse("//" + s + "/")
	return err == nil && u.Host == s && u.Hostname() != "" && hasValidPort(u)
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
