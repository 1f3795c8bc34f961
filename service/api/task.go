package api

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
	"github.com/tickless/tickless/durable/store"
)

// A Task is a task in the form of the API: a request that is sent at a time. The fields of
// a PUT or POST come first; the others are only in answers. The tag of says which fields requests
// and follow-ups do not have.
type Task struct {
	Key        string            `json:"key,omitempty" of:"task"`
	URL        string            `json:"url,omitempty"`
	Method     string            `json:"method,omitempty"` // POST if it is empty
	Headers    map[string]string `json:"headers,omitempty"`
	Body       string            `json:"body,omitempty"`
	BodyBase64 string            `json:"body_base64,omitempty"` // for a body that is not text

	// At most one of Delay, At, Cron and Every is set. Without any, the task is due now.
	Delay *Duration  `json:"delay,omitempty" of:"task"`
	At    *time.Time `json:"at,omitempty" of:"task"`
	Cron  string     `json:"cron,omitempty" of:"task"`
	Zone  string     `json:"zone,omitempty"`
	Every *Duration  `json:"every,omitempty" of:"task"`

	Queue       string   `json:"queue,omitempty"`
	Group       string   `json:"group,omitempty" of:"task"` // for the limits by group of a queue
	Timeout     Duration `json:"timeout,omitzero"`
	MaxAttempts int      `json:"max_attempts,omitempty"`
	Backoff     *Backoff `json:"backoff,omitempty"`
	// ExpiresIn makes the run a dead letter if it would start this much late.
	ExpiresIn Duration `json:"expires_in,omitzero" of:"task"`
	Keep      *Keep    `json:"keep,omitempty" of:"task"`
	UniqueFor Duration `json:"unique_for,omitzero" of:"task"`
	// Paused says that the task waits until it is resumed.
	Paused bool `json:"paused,omitempty" of:"task"`

	// OnSuccess and OnFailure are sent after a run that has succeeded or is dead. They have only
	// url, method, headers, body, queue, timeout, max_attempts, backoff and their own
	// on_success and on_failure.
	OnSuccess *Task `json:"on_success,omitempty"`
	OnFailure *Task `json:"on_failure,omitempty"`

	State     string     `json:"state,omitempty" of:"answer"` // pending, running, paused, dead, done or failed
	Due       *time.Time `json:"due,omitempty" of:"answer"`   // when the next attempt begins; absent if it never does
	Ended     time.Time  `json:"ended,omitzero" of:"answer"`  // when a dead letter died, or a finished run ended
	Attempts  int        `json:"attempts,omitempty" of:"answer"`
	LastError string     `json:"last_error,omitempty" of:"answer"`
	Version   string     `json:"version,omitempty" of:"answer"`

	// Failures are the latest failed attempts, in the answer to a GET of one task.
	Failures []durable.Failure `json:"failures,omitempty" of:"answer"`

	hash string     // of a request with an Idempotency-Key
	next *time.Time // when a pending task runs next, unless it is paused
}

// A Backoff is the range of the delay between two attempts: about Min after the first one,
// twice as much after each other, at most Max.
type Backoff struct {
	Min Duration `json:"min"`
	Max Duration `json:"max"`
}

// Keep says which finished runs of a task are kept.
type Keep struct {
	Runs int      `json:"runs,omitempty"`
	For  Duration `json:"for,omitzero"`
}

// A Duration is a time.Duration whose JSON is a text such as "1.5s".
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses a text such as "1.5s". Negative durations are errors.
func (d *Duration) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	if err != nil || parsed < 0 {
		// Package json adds the name of the field to this type of error.
		return &json.UnmarshalTypeError{Value: fmt.Sprintf("string %.40q instead of a duration such as 1.5s or 24h", b), Type: reflect.TypeFor[Duration]()}
	}
	*d = Duration(parsed)
	return nil
}

// The headers of a durable.Task that the API uses for itself.
const (
	backoffHeader = "tickless-backoff" // as "1s 1h"
	requestHeader = "tickless-request" // the hash of a request with an Idempotency-Key
)

// item converts a requested task for the client. The time is now, Next for a repeating
// task, or what the task says.
func (a *API) item(t *Task) (durable.Item, error) {
	var p fieldErrors
	task, when := a.convert(t, &p)
	return durable.Item{Task: task, When: when}, p.err()
}

// options returns the options with which the task is scheduled.
func (t *Task) options(opts ...durable.ScheduleOption) []durable.ScheduleOption {
	if t.Paused {
		opts = append(opts, durable.Paused())
	}
	return opts
}

// convertFollowUp converts a follow-up, which is the field name of another task.
func (a *API) convertFollowUp(t *Task, name string, p *fieldErrors) *durable.Task {
	if t == nil {
		return nil
	}
	var own fieldErrors
	task, _ := a.convert(t, &own)
	task.Retention = durable.Retention{}
	for _, x := range own.list {
		p.add(name+x.Pointer, x.Detail)
	}
	return &task
}

func (a *API) convert(t *Task, p *fieldErrors) (task durable.Task, when durable.When) {
	body := []byte(t.Body)
	if t.BodyBase64 != "" {
		var err error
		if body, err = base64.StdEncoding.DecodeString(t.BodyBase64); err != nil {
			p.add("/body_base64", "is not base64")
		}
		if t.Body != "" {
			p.add("/body", "give either body or body_base64")
		}
	}
	task, err := callback.Request{URL: t.URL, Method: t.Method, Headers: t.Headers, Body: body}.Task(t.Key)
	refused := a.checkURL(t.URL)
	switch {
	case t.URL == "":
		p.add("/url", "is missing")
	case strings.Contains(t.URL, mask) || strings.Contains(t.URL, url.QueryEscape(mask)):
		p.add("/url", hasDots)
	case err != nil:
		p.add(pointerOf(err), errorText(err))
	case refused != nil:
		p.add("/url", errorText(refused))
	}
	task.Handler, task.Group = t.Queue, t.Group
	if t.Queue == "" {
		task.Handler = a.queues[0]
	} else if !slices.Contains(a.queues, t.Queue) {
		p.add("/queue", fmt.Sprintf("there is no queue %.80q; there are %s", t.Queue, strings.Join(a.queues, ", ")))
	}
	for name, value := range t.Headers {
		if value == mask {
			p.add("/headers/"+pointerEscaper.Replace(name), hasDots)
		}
	}
	if t.Key == "/" || slices.ContainsFunc(strings.Split(t.Key, "/"), func(part string) bool { return part == "." || part == ".." }) {
		p.add("/key", "is a slash or has a part . or .., which servers, proxies and browsers take out of a task's path")
	}
	task.Headers = map[string]string{}
	if b := t.Backoff; b != nil {
		if b.Min <= 0 || b.Max < b.Min {
			p.add("/backoff", "needs a positive min and a max that is not less")
		}
		task.Headers[backoffHeader] = fmt.Sprintf("%v %v", time.Duration(b.Min), time.Duration(b.Max))
	}
	task.Timeout, task.MaxAttempts, task.Unique = time.Duration(t.Timeout), t.MaxAttempts, time.Duration(t.UniqueFor)
	if t.ExpiresIn > 0 {
		task.Missed, task.MissedAfter = durable.DeadMissed, time.Duration(t.ExpiresIn)
	}
	if t.hash != "" {
		task.Headers[requestHeader] = t.hash
		if !t.repeats() {
			task.Unique = max(task.Unique, idempotency)
		}
	}
	task.Retention = a.retention
	if k := t.Keep; k != nil {
		task.Retention = durable.Retention{Runs: k.Runs, For: time.Duration(k.For)}
	}
	task.OnSuccess, task.OnFailure = a.convertFollowUp(t.OnSuccess, "/on_success", p), a.convertFollowUp(t.OnFailure, "/on_failure", p)
	task.Cron, task.Zone = t.Cron, t.Zone
	times := 0
	when = durable.After(0)
	if t.Delay != nil {
		times, when = times+1, durable.After(time.Duration(*t.Delay))
	}
	if t.At != nil {
		times, when = times+1, durable.At(*t.At)
	}
	if t.Cron != "" {
		times, when = times+1, durable.Next()
	}
	if t.Every != nil {
		times, when, task.Every = times+1, durable.Next(), time.Duration(*t.Every)
		if task.Every == 0 {
			p.add("/every", "is not positive")
		}
	}
	if times > 1 {
		p.add("", "give one of delay, at, cron and every")
	}
	if t.Zone != "" && t.Cron == "" {
		p.add("/zone", "is only for cron")
	}
	return task, when
}

// TaskOf converts a stored task to the form of the API. For a task that is not a callback,
// the body is shown as it is.
func TaskOf(info *durable.Info) Task {
	x := &info.Task
	key := info.ID
	if info.State == durable.Past { // the id of a run, which begins with the key
		key = x.Key
	}
	t := Task{Key: key, Queue: x.Handler, Group: x.Group, Cron: x.Cron, Zone: x.Zone,
		Timeout: Duration(x.Timeout), MaxAttempts: x.MaxAttempts, UniqueFor: Duration(x.Unique),
		State: info.State.String(), Attempts: info.Attempts, hash: x.Headers[requestHeader]}
	if every := Duration(x.Every); every != 0 {
		t.Every = &every
	}
	body := x.Body
	if r, err := callback.Parse(x.Body); err == nil {
		t.URL, t.Method, t.Headers, body = r.URL, r.Method, r.Headers, r.Body
	}
	if utf8.Valid(body) {
		t.Body = string(body)
	} else {
		t.BodyBase64 = base64.StdEncoding.EncodeToString(body)
	}
	if low, high, ok := strings.Cut(x.Headers[backoffHeader], " "); ok {
		b := new(Backoff)
		if b.Min.UnmarshalText([]byte(low)) == nil && b.Max.UnmarshalText([]byte(high)) == nil {
			t.Backoff = b
		}
	}
	if x.Missed == durable.DeadMissed {
		t.ExpiresIn = Duration(x.MissedAfter)
	}
	if r := x.Retention; r != (durable.Retention{}) {
		t.Keep = &Keep{r.Runs, Duration(r.For)}
	}
	t.OnSuccess, t.OnFailure = followUpOf(x.OnSuccess), followUpOf(x.OnFailure)
	if info.State == durable.Pending {
		next := info.At
		if next.IsZero() { // the last time of all
			next = store.Farthest.Std()
		}
		t.next = &next
	}
	switch {
	case failed(info):
		t.State = "failed"
	case info.State == durable.Past:
		t.State = "done"
	case info.Paused && info.State == durable.Running: // once
		t.Paused, t.Due = true, &info.Due
	case info.Paused:
		t.State, t.Paused = "paused", true
	case info.State == durable.Pending:
		t.Due = t.next
	case info.State == durable.Running:
		t.Due = &info.Due
	}
	switch {
	case info.State == durable.Dead:
		t.Ended = info.At
	case info.Run != nil:
		t.Ended = info.Run.Ended
	}
	if n := len(info.Failures); n > 0 {
		t.LastError = info.Failures[n-1].Error
	}
	return t
}

// followUpOf converts a stored follow-up to the form of the API.
func followUpOf(x *durable.Task) *Task {
	if x == nil {
		return nil
	}
	t := TaskOf(&durable.Info{Task: *x})
	t.State = ""
	return &t
}

// repeats reports whether the task has another run after this one.
func (t *Task) repeats() bool { return t.Cron != "" || t.Every != nil }

// Request returns the task without what only answers have, for a merge patch.
func (t Task) Request() Task {
	if !t.repeats() {
		t.At = cmp.Or(t.Due, t.next)
	}
	t.State, t.Due, t.Ended, t.Attempts, t.LastError, t.Version, t.Paused = "", nil, time.Time{}, 0, "", "", false
	return t
}

// Shown returns a stored task as answers and pages show it.
func Shown(info *durable.Info) Task {
	t := TaskOf(info)
	t.Version = versionOf(info)
	return t.Masked()
}

// Masked returns the task with dots in place of what may be a secret: headers that carry
// credentials, and parts of the URL.
func (t Task) Masked() Task {
	for _, f := range []**Task{&t.OnSuccess, &t.OnFailure} {
		if *f != nil {
			masked := (*f).Masked()
			*f = &masked
		}
	}
	t.URL = maskURL(t.URL)
	t.Headers = maps.Clone(t.Headers)
	for k := range t.Headers {
		if isSecret(k) {
			t.Headers[k] = mask
		}
	}
	return t
}

const (
	mask    = "••••"
	hasDots = "has dots, which stand for a value that is not shown"
)

// maskURL returns a URL with dots in place of the user and the password, and of the values of
// query parameters whose names say that they are secrets.
func maskURL(raw string) string {
	rest, fragment, hasFragment := strings.Cut(raw, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	if scheme, address, ok := strings.Cut(rest, "://"); ok {
		host, _, _ := strings.Cut(address, "/")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			rest = scheme + "://" + mask + address[at:]
		}
	}
	if hasQuery {
		parameters := strings.Split(query, "&")
		for i, x := range parameters {
			name, _, _ := strings.Cut(x, "=")
			if unescaped, err := url.QueryUnescape(name); err != nil || isSecret(unescaped) {
				parameters[i] = name + "=" + mask
			}
		}
		rest += "?" + strings.Join(parameters, "&")
	}
	if hasFragment {
		rest += "#" + fragment
	}
	return rest
}

// unmask puts the values of the task before a change in place of dots: those of headers, and the
// URL if it is the other one with dots. It keeps what is known of an Idempotency-Key.
func (t *Task) unmask(before *Task) {
	t.hash = before.hash
	if t.URL == maskURL(before.URL) {
		t.URL = before.URL
	}
	for name, value := range t.Headers {
		if old, ok := before.Headers[name]; ok && value == mask {
			t.Headers[name] = old
		}
	}
	if t.OnSuccess != nil && before.OnSuccess != nil {
		t.OnSuccess.unmask(before.OnSuccess)
	}
	if t.OnFailure != nil && before.OnFailure != nil {
		t.OnFailure.unmask(before.OnFailure)
	}
}

// isSecret reports whether the value of a header or a query parameter with the name may be a
// secret.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"auth", "cookie", "token", "secret", "key", "pass", "pwd", "sig", "credential", "csrf", "session", "jwt"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// DecodeTask decodes one JSON object, without unknown fields.
func DecodeTask(b []byte) (t Task, err error) { return t, decodeStrict(b, &t) }

// mergePatch applies an RFC 7396 patch to a JSON object.
func mergePatch(target, patch map[string]json.RawMessage) error {
	for k, v := range patch {
		if string(v) == "null" {
			delete(target, k)
			continue
		}
		var patchObject, targetObject map[string]json.RawMessage
		if json.Unmarshal(v, &patchObject) != nil || patchObject == nil {
			target[k] = v
			continue
		}
		if json.Unmarshal(target[k], &targetObject) != nil || targetObject == nil {
			targetObject = map[string]json.RawMessage{}
		}
		if err := mergePatch(targetObject, patchObject); err != nil {
			return err
		}
		b, err := json.Marshal(targetObject)
		if err != nil {
			return err
		}
		target[k] = b
	}
	return nil
}
