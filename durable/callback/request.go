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

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// A Request is the HTTP request to send when a task is due.
type Request struct {
	URL     string            // http or https, with a host; escaped, so without blanks
	Method  string            // POST if it is empty; not CONNECT
	Headers map[string]string // Host sets the request's host; headers that the package sets are refused
	Body    []byte
}

// wire is the encoding of a Request in a task's body. A body that is text stays
// readable, unless that would make the task too large.
type wire struct {
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Bytes   []byte            `json:"body64,omitempty"`
}

// Task returns a task with this key that sends the request. Its other fields may be set
// before it is scheduled. The error is [ErrInvalid] for a request that can never be
// sent, or whose JSON encoding takes more than [durable.MaxTask] bytes. The encoding
// makes a body a third longer if the body is not text or needs many escapes.
func (r Request) Task(key string) (durable.Task, error) {
	if _, err := r.check(); err != nil {
		return durable.Task{}, err
	}
	w := wire{URL: r.URL, Method: r.Method, Headers: r.Headers}
	if utf8.Valid(r.Body) {
		w.Body = string(r.Body)
	} else {
		w.Bytes = r.Body
	}
	const most = durable.MaxTask - len(Name)
	body, err := encode(w)
	if err == nil && len(key)+len(body) > most && w.Body != "" {
		w.Body, w.Bytes = "", r.Body
		body, err = encode(w)
	}
	switch {
	case err != nil:
		return durable.Task{}, invalid("%v", err)
	case len(key)+len(body) > most:
		return durable.Task{}, invalid("it takes %d bytes as it is stored, with the key, more than %d", len(key)+len(body), most)
	}
	return durable.Task{Key: key, Handler: Name, Body: body}, nil
}

func encode(w wire) ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	err := enc.Encode(w)
	return bytes.TrimSpace(body.Bytes()), err
}

// Parse returns the request in a task's body. It is the reverse of [Request.Task].
func Parse(body []byte) (Request, error) {
	var w wire
	if err := json.Unmarshal(body, &w); err != nil {
		return Request{}, invalid("the task's body was not made by Request.Task: %v", err)
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
	u, err := r.url()
	if err != nil {
		return nil, err
	}
	if r.Method != "" && !token(r.Method) || r.Method == http.MethodConnect {
		return nil, invalid("the method %q", r.Method)
	}
	seen := make(map[string]bool, len(r.Headers))
	for k, v := range r.Headers {
		if err := checkHeader(k, v); err != nil {
			return nil, err
		}
		name := textproto.CanonicalMIMEHeaderKey(k)
		if seen[name] {
			return nil, invalid("the header %s is there more than once", name)
		}
		seen[name] = true
	}
	if !arrives(&http.Request{URL: u, Host: r.host()}) {
		return nil, invalid("the URL %q, or its host, cannot be sent: it has to be escaped", shown(u))
	}
	return u, nil
}

// arrives reports whether a server can parse the URL and the host as net/http sends
// them.
func arrives(req *http.Request) bool {
	var wire bytes.Buffer
	if req.Write(&wire) != nil {
		return false
	}
	got, err := http.ReadRequest(bufio.NewReaderSize(&wire, 512))
	return err == nil && got.Host != ""
}

// host returns the value of the Host header, or "".
func (r Request) host() string {
	for k, v := range r.Headers {
		if strings.EqualFold(k, "Host") {
			return v
		}
	}
	return ""
}

func (r Request) url() (*url.URL, error) {
	u, err := url.Parse(r.URL)
	if err == nil && (!portOK(u) || u.Scheme != "http" && u.Scheme != "https") && strings.Contains(u.Path+u.Opaque, "@") {
		err = errSlash
	}
	switch {
	case err != nil:
		return nil, invalid("the URL cannot be parsed: %v", unquoted(r.URL, err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, invalid("the URL %q is neither http nor https", shown(u))
	case u.Hostname() == "":
		return nil, invalid("the URL %q has no host", shown(u))
	case !portOK(u):
		return nil, invalid("the URL %q has a port that is not from 1 to 65535", shown(u))
	case !utf8.ValidString(r.URL):
		return nil, invalid("the URL %q is not UTF-8", shown(u))
	}
	return u, nil
}

// errSlash is the error for a URL whose password probably contains a slash: the rest of
// the password is then part of the path.
var errSlash = errors.New("the path contains an @")

// unquoted returns err without any part of the URL that may be secret. An unescaped /
// in a password turns its beginning into a port and its rest into a path, and errors
// quote both.
func unquoted(raw string, err error) error {
	if strings.Contains(raw, "@") {
		return errors.New("in a user name or a password, write / as %2F, ? as %3F, # as %23 and @ as %40")
	}
	var whole *url.Error
	if errors.As(err, &whole) {
		return whole.Err
	}
	return err
}

func portOK(u *url.URL) bool {
	if u.Port() == "" {
		return true
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

// reserved reports whether the handler or HTTP itself sets the header.
func reserved(name string) bool {
	switch name = textproto.CanonicalMIMEHeaderKey(name); name {
	case headerIdempotency, "Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade":
		return true
	}
	return strings.HasPrefix(name, "Tickless-")
}

func checkHeader(name, value string) error {
	bad := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	switch {
	case !token(name):
		return invalid("the header name %q", name)
	case reserved(name):
		return invalid("the header %s is set by this package", name)
	case strings.ContainsFunc(value, bad):
		return invalid("the value of the header %s contains a control character", name)
	case !utf8.ValidString(value):
		return invalid("the value of the header %s is not UTF-8", name)
	case strings.EqualFold(name, "Host") && !isHost(value):
		return invalid("the header Host is %q, not a name or an address with an optional port", value)
	}
	return nil
}

func isHost(s string) bool {
	u, err := url.Parse("//" + s + "/")
	return err == nil && u.Host == s && u.Hostname() != "" && portOK(u)
}

// token reports whether s is a token of RFC 9110.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
