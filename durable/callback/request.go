package callback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/tickless/tickless/durable"
)

// Name is the name of the handler in the tasks that [Request.Task] makes.
const Name = "http"

// ErrInvalid is returned for a request that can never be sent.
var ErrInvalid = errors.New("callback: invalid request")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// A Request is what is sent when a task is due.
type Request struct {
	URL     string            // http or https, with a host
	Method  string            // POST if it is empty
	Headers map[string]string // Host is the request's host; those of the package doc are refused
	Body    []byte
}

// wire is a Request as a task's body has it. A body that is text stays readable.
type wire struct {
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Bytes   []byte            `json:"body64,omitempty"`
}

// Task returns a task with the key that sends the request, to be scheduled as it
// is or with its other fields set. The error is [ErrInvalid].
func (r Request) Task(key string) (durable.Task, error) {
	if _, err := r.url(); err != nil {
		return durable.Task{}, err
	}
	if r.Method != "" && !token(r.Method) {
		return durable.Task{}, invalid("the method %q", r.Method)
	}
	for k, v := range r.Headers {
		if err := checkHeader(k, v); err != nil {
			return durable.Task{}, err
		}
	}
	w := wire{URL: r.URL, Method: r.Method, Headers: r.Headers}
	if utf8.Valid(r.Body) {
		w.Body = string(r.Body)
	} else {
		w.Bytes = r.Body
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(w); err != nil {
		return durable.Task{}, invalid("%v", err)
	}
	return durable.Task{Key: key, Handler: Name, Body: bytes.TrimSpace(body.Bytes())}, nil
}

// Parse is the reverse of [Request.Task]: it returns what a task's body asks for.
func Parse(body []byte) (Request, error) {
	var w wire
	if err := json.Unmarshal(body, &w); err != nil {
		return Request{}, invalid("the task's body is none of Request.Task: %v", err)
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

func (r Request) url() (*url.URL, error) {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return nil, invalid("%v", err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, invalid("the URL %q is neither http nor https", u.Redacted())
	case u.Hostname() == "":
		return nil, invalid("the URL %q has no host", u.Redacted())
	}
	return u, nil
}

// own are the headers that the handler or HTTP itself sets.
func own(name string) bool {
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
		return invalid("the header's name %q", name)
	case own(name):
		return invalid("the header %s is not the task's to set", name)
	case strings.ContainsFunc(value, bad):
		return invalid("the value of the header %s contains a control character", name)
	}
	return nil
}

// token reports whether s is a token as RFC 9110 has it.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
