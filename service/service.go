package service

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/metrics"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/prom"
	"github.com/tickless/tickless/service/api"
	"github.com/tickless/tickless/service/console"
)

// A Config says how New makes the service. The zero Config is for a service on the loopback
// interface, without tokens.
type Config struct {
	Queues    []string          // the first is the default; see api.WithQueues
	Retention durable.Retention // of tasks that do not say it; zero: api.DefaultRetention
	// CheckURL refuses URLs of tasks; nil: none. See callback.Caller's CheckURL.
	CheckURL func(url string) error
	Tokens   []Token // without tokens, every request is allowed
	// Hosts are the host names that requests may have, besides localhost and loopback
	// addresses. With tokens and no Hosts, any name is allowed.
	Hosts []string
	// RecordBytes is about how many bytes the records of finished runs may take in the store. Run
	// deletes the oldest records beyond it. Zero means any amount.
	RecordBytes int64
	Prefix      string // of all paths, such as "/tickless", behind a proxy that does not strip it
	ReadOnly    bool   // refuses every change, of the page too
	Log         *slog.Logger
	Worker      *durable.Worker // for the metrics, or nil
}

// A Service is the handler of the API, the page, the metrics and the probes.
type Service struct {
	handler http.Handler
	page    *console.Console
	client  *durable.Client
	config  Config
}

// New returns a Service over a client. It starts no goroutine.
func New(client *durable.Client, c Config) *Service {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Prefix = strings.TrimSuffix(c.Prefix, "/")
	audit := func(ctx context.Context, action, key string, n int) {
		c.Log.LogAttrs(ctx, slog.LevelInfo, "change", slog.String("action", action), slog.String("key", key), slog.Int("tasks", n), slog.String("token", TokenName(ctx)))
	}
	opts := []api.Option{api.WithAudit(audit)}
	if len(c.Queues) > 0 {
		opts = append(opts, api.WithQueues(c.Queues...))
	}
	if c.Retention != (durable.Retention{}) {
		opts = append(opts, api.WithRetention(c.Retention))
	}
	if c.CheckURL != nil {
		opts = append(opts, api.WithCheckURL(c.CheckURL))
	}
	a := api.New(client, opts...)
	mux := http.NewServeMux()
	mux.Handle("/v1/", a)
	mux.Handle("/openapi.json", a)
	page := console.New(a, console.WithPrefix(c.Prefix), console.WithCanChange(func(r *http.Request) bool {
		t, _ := r.Context().Value(tokenKey{}).(*Token)
		return !c.ReadOnly && (len(c.Tokens) == 0 || t != nil && t.CanChange)
	}))
	mux.Handle("/", page)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if _, err := client.Store().Now(ctx, 0); err != nil {
			writeText(w, http.StatusServiceUnavailable, "the store does not answer")
			return
		}
		writeText(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", metricsHandler(client, c.Worker))
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) { c.login(w, r) })
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		clearSession(w, c.Prefix)
		http.Redirect(w, r, c.Prefix+"/login", http.StatusSeeOther)
	})
	var h http.Handler = mux
	if c.ReadOnly {
		h = readOnly(h)
	}
	h = newGuard(h, &c)
	if c.Prefix != "" {
		mux := http.NewServeMux() // redirects to clean paths below the prefix
		mux.Handle(c.Prefix+"/", http.StripPrefix(c.Prefix, h))
		h = mux
	}
	return &Service{h, page, client, c}
}

// ServeHTTP serves a request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run samples the store's counters for the page, and keeps records below Config.RecordBytes,
// until ctx ends.
func (s *Service) Run(ctx context.Context) {
	var sampling sync.WaitGroup
	defer sampling.Wait()
	sampling.Go(func() { s.page.Run(ctx) })
	if s.config.RecordBytes == 0 {
		return
	}
	span := cmp.Or(s.config.Retention.For, api.DefaultRetention.For)
	for t := time.NewTicker(recordsInterval); ; {
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		n, err := limitRecords(ctx, s.client, s.config.RecordBytes, span)
		if n > 0 {
			s.config.Log.Info("records of finished runs were deleted early, because they take more than their limit", "records", n, "limit_bytes", s.config.RecordBytes)
		}
		if err != nil && ctx.Err() == nil {
			s.config.Log.Error("records of finished runs cannot be deleted", "error", err)
		}
	}
}

// login exchanges a token for a cookie.
func (c *Config) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	t := findToken(c.Tokens, r.PostFormValue("token"))
	if t == nil {
		time.Sleep(time.Second) // slows a browser that guesses
		http.Redirect(w, r, c.Prefix+"/login?wrong=1", http.StatusSeeOther)
		return
	}
	setSession(w, r, t, c.Prefix)
	http.Redirect(w, r, c.Prefix+"/", http.StatusSeeOther)
}

func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && r.URL.Path != "/login" && r.URL.Path != "/logout" {
			refuse(w, r, http.StatusForbidden, "the service is read-only")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func metricsHandler(client *durable.Client, worker *durable.Worker) http.Handler {
	sources := []observe.Source{observe.Schedulers(), metrics.Client("service", client)}
	if worker != nil {
		sources = append(sources, metrics.Worker("service", worker))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.New(sources...))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}
