package console

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/service/api"
)

//go:embed pages/layout.html
var pageText string

//go:embed static
var static embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"ago": fromNow, "capital": capital, "cut": cut, "name": shownID, "path": pathOf, "post": orPost, "time": formatTime,
	"text": func(b []byte) string { return string(b) },
}).Parse(pageText))

// timeout bounds what a page asks of the store.
const timeout = 10 * time.Second

// A Console is the http.Handler of the page.
type Console struct {
	client    *durable.Client
	api       *api.API
	mux       *http.ServeMux
	prefix    string
	canChange func(*http.Request) bool
	log       *slog.Logger

	mu      sync.Mutex
	samples []sample         // one a minute, the oldest first
	works   map[string]*work // bulk commands by id
	cached  map[string]cachedValue
}

// An Option changes how New makes a Console.
type Option func(*Console)

// WithPrefix sets the path under which browsers see the page, such as "/tickless". The
// Console itself gets paths without it: see http.StripPrefix.
func WithPrefix(prefix string) Option { return func(c *Console) { c.prefix = prefix } }

// WithCanChange sets a function that decides whether a request may change something. The
// default allows everything.
func WithCanChange(f func(*http.Request) bool) Option { return func(c *Console) { c.canChange = f } }

// New returns the page over an API, whose options apply to the page too. It does not start
// goroutines: Run does, for the numbers of the last hour.
func New(a *api.API, opts ...Option) *Console {
	c := &Console{client: a.Client(), api: a, mux: http.NewServeMux(), log: slog.Default(),
		canChange: func(*http.Request) bool { return true }, works: map[string]*work{}, cached: map[string]cachedValue{}}
	for _, o := range opts {
		o(c)
	}
	c.mux.Handle("GET /static/", http.FileServerFS(static))
	for pattern, h := range map[string]handlerFunc{
		"GET /{$}":                      c.overview,
		"GET /numbers":                  c.numbers,
		"GET /tasks":                    c.tasks,
		"GET /tasks/{key}":              c.task,
		"GET /new":                      c.newTask,
		"GET /repeating":                c.repeating,
		"GET /dead":                     c.dead,
		"GET /queues":                   c.showQueues,
		"GET /workers":                  c.workers,
		"GET /bulk/{id}":                c.showWork,
		"GET /login":                    c.login,
		"POST /confirm":                 c.change(c.confirm),
		"POST /bulk":                    c.change(c.startWork),
		"POST /new":                     c.change(c.createTask),
		"POST /tasks/{key}/{action}":    c.change(c.changeTask),
		"POST /queues/{queue}/{action}": c.change(c.changeQueue),
		"POST /store/{action}":          c.change(c.changeStore),
	} {
		c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			r = r.WithContext(ctx)
			if r.Method == http.MethodPost {
				r.Body = http.MaxBytesReader(w, r.Body, 256<<10)
				if err := r.ParseForm(); err != nil {
					c.fail(w, r, http.StatusBadRequest, "the form cannot be read, or is too large")
					return
				}
			}
			if err := h(w, r); err != nil {
				c.failWith(w, r, err)
			}
		})
	}
	c.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.fail(w, r, http.StatusNotFound, "There is no such page.")
	})
	return c
}

type handlerFunc = func(http.ResponseWriter, *http.Request) error

// ServeHTTP serves the page.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }

// change wraps a handler that changes something.
func (c *Console) change(h handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !c.canChange(r) {
			c.fail(w, r, http.StatusForbidden, "You may only read.")
			return nil
		}
		return h(w, r)
	}
}

// A layout has what every page shows.
type layout struct {
	Title, Prefix, Page string
	Pages               []link
	CanChange, LoggedIn bool
	Note, Problem       string
}

type link struct{ Name, Path string }

var navigation = []link{{"Overview", "/"}, {"Tasks", "/tasks"}, {"Repeating", "/repeating"}, {"Dead", "/dead"}, {"Queues", "/queues"}, {"Workers", "/workers"}}

func (c *Console) layout(r *http.Request, title, page string) layout {
	_, err := r.Cookie("tickless_session")
	return layout{Title: title, Prefix: c.prefix, Page: page, Pages: navigation, CanChange: c.canChange(r), LoggedIn: err == nil,
		Note: notes[r.URL.Query().Get("note")]}
}

// notes are the texts that a page shows after a change, by the parameter note.
var notes = map[string]string{
	"done": "Done.", "following": "The task is running. The change applies when its attempt ends.", "moved": "The task has a new time.",
	"stopping": "The task is running and was asked to stop.", "kept": "Nothing changed.", "removed": "The task is removed.", "created": "The task is scheduled.",
}

func (c *Console) render(w http.ResponseWriter, status int, name string, data any) error {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, err := w.Write(b.Bytes())
	return err
}

func (c *Console) fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	l := c.layout(r, http.StatusText(status), "")
	l.Problem = text
	_ = c.render(w, status, "error", l)
}

func (c *Console) failWith(w http.ResponseWriter, r *http.Request, err error) {
	p := api.ProblemOf(err)
	if p.Status >= 500 && !errors.Is(err, context.Canceled) {
		c.log.Error("the page has failed", "path", r.URL.Path, "error", err)
	}
	c.fail(w, r, p.Status, p.Detail)
}

// back sends the browser to a page after a change.
func (c *Console) back(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, c.prefix+path, http.StatusSeeOther)
	return nil
}

func (c *Console) login(w http.ResponseWriter, r *http.Request) error {
	l := c.layout(r, "Log in", "")
	if r.URL.Query().Get("wrong") != "" {
		l.Problem = "This is not a token of the service."
	}
	return c.render(w, http.StatusOK, "login", l)
}

// A cachedValue is kept for a few seconds, because it costs the store much.
type cachedValue struct {
	value any
	until time.Time
}

// cache returns f's result, at most lifetime old.
func cache[T any](c *Console, name string, lifetime time.Duration, f func() (T, error)) (T, error) {
	c.mu.Lock()
	x, ok := c.cached[name]
	c.mu.Unlock()
	if ok && time.Now().Before(x.until) {
		return x.value.(T), nil
	}
	v, err := f()
	if err == nil {
		c.mu.Lock()
		c.cached[name] = cachedValue{v, time.Now().Add(lifetime)}
		c.mu.Unlock()
	}
	return v, err
}
