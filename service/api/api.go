package api

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
)

// Limits of a request.
const (
	MaxBatch = 250       // tasks of one POST
	maxTask  = 128 << 10 // bytes of one task's JSON
	maxTasks = 20 << 20  // bytes of a batch's JSON
	// timeout bounds the store's part of a request.
	timeout = 20 * time.Second
)

// DefaultRetention says which finished runs are kept, unless the task says otherwise.
var DefaultRetention = durable.Retention{For: 24 * time.Hour, Runs: 100}

//go:embed openapi.json
var openAPI []byte

// An API is the http.Handler of the paths /v1/ and /openapi.json.
type API struct {
	client    *durable.Client
	mux       *http.ServeMux
	queues    []string
	retention durable.Retention
	checkURL  func(url string) error
	audit     func(ctx context.Context, action, key string, n int)
}

// An Option changes how New makes an API.
type Option func(*API)

// WithQueues sets the names of the queues, which are the handlers of the tasks. The first
// is the default. Without it there is one queue, callback.Name. Workers must have a
// handler for each: see Handler.
func WithQueues(names ...string) Option {
	return func(a *API) {
		if len(names) == 0 || slices.Contains(names, "") {
			panic("api: WithQueues: no names, or an empty one")
		}
		a.queues = names
	}
}

// WithRetention sets which finished runs are kept of a task that does not say so, instead of
// DefaultRetention.
func WithRetention(r durable.Retention) Option { return func(a *API) { a.retention = r } }

// WithCheckURL sets a function that refuses URLs of tasks, such as the method CheckURL of the
// callback.Caller that makes the calls.
func WithCheckURL(f func(url string) error) Option { return func(a *API) { a.checkURL = f } }

// WithAudit sets a function that is called after each change: the action, the key (empty
// for many tasks) and how many tasks were changed. ctx is the request's.
func WithAudit(f func(ctx context.Context, action, key string, n int)) Option {
	return func(a *API) { a.audit = f }
}

// New returns the API over a client.
func New(client *durable.Client, opts ...Option) *API {
	a := &API{client: client, mux: http.NewServeMux(), queues: []string{callback.Name}, retention: DefaultRetention,
		checkURL: func(string) error { return nil }, audit: func(context.Context, string, string, int) {}}
	for _, o := range opts {
		o(a)
	}
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request) error{
		"PUT /v1/tasks/{key}":          a.putTask,
		"POST /v1/tasks":               a.postTasks,
		"GET /v1/tasks/{key}":          a.getTask,
		"PATCH /v1/tasks/{key}":        a.patchTask,
		"DELETE /v1/tasks/{key}":       a.deleteTask,
		"POST /v1/tasks/{key}/run":     a.runTask,
		"POST /v1/tasks/{key}/requeue": a.requeueTask,
		"GET /v1/tasks/{key}/runs":     a.taskRuns,
		"GET /v1/tasks/{key}/explain":  a.explainTask,
		"GET /v1/tasks":                a.listTasks,
		"POST /v1/tasks/cancel":        a.bulk("cancel"),
		"POST /v1/tasks/requeue":       a.bulk("requeue"),
		"POST /v1/tasks/purge":         a.bulk("purge"),
		"GET /v1/runs":                 a.listRuns,
		"GET /v1/stats":                a.stats,
		"GET /v1/upcoming":             a.upcoming,
		"GET /v1/workers":              a.listWorkers,
		"GET /v1/queues":               a.listQueues,
		"GET /v1/queues/{queue}":       a.getQueue,
		"PUT /v1/queues/{queue}":       a.putQueue,
		"DELETE /v1/queues/{queue}":    a.deleteQueue,
		"GET /openapi.json": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "application/json")
			_, err := w.Write(openAPI)
			return err
		},
	} {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			if err := h(w, r.WithContext(ctx)); err != nil {
				writeProblem(w, ProblemOf(err))
			}
		})
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		methods := a.methodsOf(r)
		if len(methods) == 0 {
			writeProblem(w, Problemf(http.StatusNotFound, "there is no %.80q; see /openapi.json", r.URL.Path))
			return
		}
		w.Header().Set("Allow", strings.Join(methods, ", "))
		writeProblem(w, Problemf(http.StatusMethodNotAllowed, "the methods of this path are %s", strings.Join(methods, ", ")))
	})
	return a
}

// ServeHTTP answers with JSON, errors too.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	a.mux.ServeHTTP(w, r)
}

// methodsOf returns the methods that the request's path has.
func (a *API) methodsOf(r *http.Request) (methods []string) {
	for _, m := range []string{"GET", "PUT", "POST", "PATCH", "DELETE"} {
		x := *r
		x.Method = m
		if _, pattern := a.mux.Handler(&x); pattern != "/" {
			methods = append(methods, m)
		}
	}
	return methods
}

// Client returns the client that the API is over.
func (a *API) Client() *durable.Client { return a.client }

// QueueNames returns the names of the queues.
func (a *API) QueueNames() []string { return a.queues }

// Audit calls the function of WithAudit.
func (a *API) Audit(ctx context.Context, action, key string, n int) { a.audit(ctx, action, key, n) }

// again sends a command whose answer was lost once more.
func again(ctx context.Context, outcome durable.Outcome, err error) (durable.Outcome, error) {
	var unknown *durable.UnknownError
	if !errors.As(err, &unknown) || ctx.Err() != nil {
		return outcome, err
	}
	out, err := unknown.Again(ctx)
	if len(out) == 0 {
		return durable.Unknown, err
	}
	return out[0], err
}

// keyOf returns the key in the request's path.
func keyOf(r *http.Request) string { return r.PathValue("key") }

// Handler returns a handler for the queues' tasks: it calls next, which is usually a
// callback.Caller's Handle, and applies the task's backoff. A repeating task ends if the
// answer is 410 Gone.
func Handler(client *durable.Client, next durable.Handler) durable.Handler {
	return func(ctx context.Context, d durable.Delivery) error {
		low, high, ok := strings.Cut(d.Headers[backoffHeader], " ")
		err := next(ctx, d)
		var status *callback.StatusError
		if errors.As(err, &status) && status.Code == http.StatusGone && d.Ended == nil { // a follow-up has another's key
			return errors.Join(err, endRepetition(ctx, client, d.Key))
		}
		var noRetry *durable.NoRetryError
		var retryAfter *durable.RetryAfterError
		var handBack *durable.HandBackError
		if err == nil || !ok || errors.As(err, &noRetry) || errors.As(err, &retryAfter) || errors.As(err, &handBack) {
			return err
		}
		lowest, lowErr := time.ParseDuration(low)
		highest, highErr := time.ParseDuration(high)
		if lowErr != nil || highErr != nil {
			return err
		}
		return durable.RetryAfter(err, backoff(lowest, highest, d.Attempt))
	}
}

// endRepetition makes the present run of a task its last, if it repeats.
func endRepetition(ctx context.Context, client *durable.Client, key string) error {
	info, err := client.Get(ctx, key)
	if t := info.Task; err == nil && (t.Cron != "" || t.Every > 0) {
		t.Start, t.End = time.Time{}, info.Due
		_, err = client.Schedule(ctx, t, durable.Next())
	}
	if errors.Is(err, durable.ErrNotFound) {
		return nil
	}
	return err
}

// backoff returns the delay after an attempt: from half of lowest*2^(attempt-1) to all of it,
// at most highest.
func backoff(lowest, highest time.Duration, attempt int) time.Duration {
	d := lowest
	for range attempt - 1 {
		if d >= highest/2 {
			d = highest
			break
		}
		d *= 2
	}
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}

// keyFor derives a task's key from an Idempotency-Key.
func keyFor(idempotencyKey string) string {
	sum := sha256.Sum256([]byte(idempotencyKey))
	return "once-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20]))
}

// hashOf returns a hash of a request's content.
func hashOf(t *Task) string {
	b, _ := json.Marshal(t)
	sum := sha256.Sum256(b)
	return fmt.Sprintf("%x", sum[:12])
}
