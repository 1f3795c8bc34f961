package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
)

// A Problem is an error in the form of RFC 9457.
type Problem struct {
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail,omitempty"`
	Errors []FieldError `json:"errors,omitempty"`

	retryAfter int // seconds; 0: no header
}

// A FieldError names a field of the request by its JSON pointer.
type FieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Title, p.Detail) }

// Problemf returns a Problem.
func Problemf(status int, format string, args ...any) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// fieldErrors collects what is wrong with a request.
type fieldErrors struct{ list []FieldError }

func (p *fieldErrors) add(pointer, detail string) {
	p.list = append(p.list, FieldError{pointer, detail})
}

func (p *fieldErrors) err() error {
	if len(p.list) == 0 {
		return nil
	}
	x := Problemf(http.StatusUnprocessableEntity, "%s %s", strings.TrimPrefix(p.list[0].Pointer, "/"), p.list[0].Detail)
	x.Errors = p.list
	return x
}

// under returns the problem of a part of a request whose pointer is given.
func (p *Problem) under(pointer string) *Problem {
	x := *p
	x.Errors = nil
	for _, e := range p.Errors {
		x.Errors = append(x.Errors, FieldError{pointer + e.Pointer, e.Detail})
	}
	if len(x.Errors) == 0 && x.Status < http.StatusInternalServerError {
		x.Errors = []FieldError{{pointer, x.Detail}}
	}
	return &x
}

// errorText returns an error's text without the prefixes of Go packages.
func errorText(err error) string {
	text := err.Error()
	for _, prefix := range []string{callback.ErrInvalid.Error() + ": ", callback.ErrAddress.Error() + ": ", durable.ErrInvalid.Error() + ": "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// ProblemOf converts an error of the client.
func ProblemOf(err error) *Problem {
	var p *Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, durable.ErrNotFound):
		return Problemf(http.StatusNotFound, "there is no such task")
	case errors.Is(err, durable.ErrInvalid) && !errors.Is(err, durable.ErrUnknown):
		x := Problemf(http.StatusUnprocessableEntity, "%s", errorText(err))
		x.Errors = []FieldError{{pointerOf(err), errorText(err)}}
		return x
	case errors.Is(err, durable.ErrFull):
		p = Problemf(http.StatusServiceUnavailable, "the store is full")
	case errors.Is(err, durable.ErrUnknown):
		p = Problemf(http.StatusServiceUnavailable, "the store did not answer: the change may have been made, or may still be; repeat the request")
	case errors.Is(err, durable.ErrBusy), errors.Is(err, durable.ErrNotDone), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		p = Problemf(http.StatusServiceUnavailable, "the store is busy or not reachable; nothing was changed")
	default:
		p = Problemf(http.StatusServiceUnavailable, "the store failed")
	}
	p.retryAfter = 1
	return p
}

// pointerOf guesses which field an error about a task is about.
func pointerOf(err error) string {
	text := strings.ToLower(errorText(err))
	for _, x := range [][2]string{{"the url", "/url"}, {"method", "/method"}, {"header", "/headers"}, {"body", "/body"}, {"url", "/url"}, {"cron", "/cron"}, {"zone", "/zone"},
		{"every", "/every"}, {"retention", "/keep"}, {"unique", "/unique_for"}, {"attempts", "/max_attempts"}, {"timeout", "/timeout"},
		{"missedafter", "/expires_in"}, {"group", "/group"}, {"key", "/key"}, {"delay", "/delay"}, {"time", "/at"}} {
		if strings.Contains(text, x[0]) {
			return x[1]
		}
	}
	return ""
}

func writeProblem(w http.ResponseWriter, p *Problem) {
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	write(w, p.Status, "application/problem+json", p)
}

func write(w http.ResponseWriter, status int, contentType string, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	if err := e.Encode(v); err != nil {
		status, contentType = http.StatusInternalServerError, "application/problem+json"
		b.Reset()
		_ = e.Encode(Problemf(status, "the answer cannot be encoded"))
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

func writeJSON(w http.ResponseWriter, status int, v any) { write(w, status, "application/json", v) }

// readBody reads a request's JSON body of at most limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, types ...string) ([]byte, error) {
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	known := mediaType == "application/json"
	for _, t := range types {
		known = known || mediaType == t
	}
	if !known {
		return nil, Problemf(http.StatusUnsupportedMediaType, "the Content-Type must be application/json, got %.80q", mediaType)
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, Problemf(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", limit)
	case err != nil:
		return nil, Problemf(http.StatusBadRequest, "the body cannot be read")
	}
	return b, nil
}

// maxDepth bounds how deep a body is nested: a task in a batch, its follow-ups and their
// fields.
const maxDepth = 12

// checkText refuses a body that is not UTF-8, which decoding would change, or that is nested
// too deeply, which would cost too much.
func checkText(b []byte) error {
	if !utf8.Valid(b) {
		return Problemf(http.StatusBadRequest, "the body is not UTF-8: send other bytes as body_base64")
	}
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return Problemf(http.StatusUnprocessableEntity, "the body is nested more than %d deep", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// decodeStrict decodes all of b. Unknown fields and trailing data are errors.
func decodeStrict(b []byte, v any) error {
	if err := checkText(b); err != nil {
		return err
	}
	return decodeText(b, v)
}

// decodeText is decodeStrict for what checkText has seen.
func decodeText(b []byte, v any) error {
	var p fieldErrors
	if checkFields(b, reflect.TypeOf(v), "", &p); len(p.list) > 0 {
		return p.err()
	}
	err := json.Unmarshal(b, v)
	var wrongType *json.UnmarshalTypeError
	var wrongTime *time.ParseError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongType) && wrongType.Field != "":
		field := strings.TrimPrefix(wrongType.Field, "FilterQuery.") // embedded: the JSON does not have it
		p.add("/"+strings.ReplaceAll(field, ".", "/"), "is a "+wrongType.Value)
		return p.err()
	case errors.As(err, &wrongTime):
		p.add("/"+timeField(v), fmt.Sprintf("is %.40q instead of a time such as 2027-01-02T15:04:05Z", wrongTime.Value))
		return p.err()
	}
	return Problemf(http.StatusBadRequest, "the body is not the expected JSON: %.200s", err)
}

// checkFields refuses fields of an object that the type t does not have. Package json would take a
// field in any case: "Delay" for "delay".
func checkFields(b []byte, t reflect.Type, at string, p *fieldErrors) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var fields map[string]json.RawMessage
	if t.Kind() != reflect.Struct || json.Unmarshal(b, &fields) != nil {
		return
	}
	known := fieldsOf(t)
	for name, value := range fields {
		pointer := at + "/" + pointerEscaper.Replace(name)
		switch f, ok := known[name]; {
		case !ok:
			p.add(pointer, "is unknown")
		case string(value) == "null": // as if it were absent
		case f.Tag.Get("of") == "answer":
			p.add(pointer, "is set by the service only")
		case f.Tag.Get("of") == "task" && at != "":
			p.add(pointer, "is not for a follow-up")
		case name == "cron" && string(value) == `""`: // it would mean now
			p.add(pointer, "is empty")
		default:
			checkFields(value, f.Type, pointer, p)
		}
	}
	slices.SortFunc(p.list, func(a, b FieldError) int { return cmp.Compare(a.Pointer, b.Pointer) })
}

var fieldsCache sync.Map // the results of fieldsOf by their arguments

// fieldsOf returns a struct's fields by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	if x, ok := fieldsCache.Load(t); ok {
		return x.(map[string]reflect.StructField)
	}
	fields := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f
		}
	}
	fieldsCache.Store(t, fields)
	return fields
}

// timeField returns the name of the only field of v that is a time.
func timeField(v any) string {
	if _, isTask := v.(*Task); isTask {
		return "at"
	}
	return "due_before"
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")
