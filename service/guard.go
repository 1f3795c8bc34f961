package service

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

const (
	cookieName = "tickless_session"
	// maxAtOnce is how many requests are served at a time, and maxStrangers how many of
	// those without a token: the login. More are told to try again.
	maxAtOnce    = 512
	maxStrangers = 64
)

// wrongTokens limits how many wrong tokens a second are answered, so that nobody guesses.
const (
	wrongTokensRate  = 5
	wrongTokensBurst = 20
)

// A guard checks each request before a handler sees it.
type guard struct {
	next      http.Handler
	config    *Config
	places    chan struct{}
	strangers chan struct{}
	wrong     *rate.Limiter
	crossing  *http.CrossOriginProtection
}

func newGuard(next http.Handler, c *Config) *guard {
	return &guard{next: next, config: c, places: make(chan struct{}, maxAtOnce), strangers: make(chan struct{}, maxStrangers),
		wrong: rate.NewLimiter(wrongTokensRate, wrongTokensBurst), crossing: http.NewCrossOriginProtection()}
}

type tokenKey struct{}

// TokenName returns the name of the token of a request, or "-".
func TokenName(ctx context.Context) string {
	if t, _ := ctx.Value(tokenKey{}).(*Token); t != nil {
		return t.Name
	}
	return "-"
}

// policy is the Content-Security-Policy of all answers: own styles and scripts, no frames.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if !g.hostAllowed(r) {
		refuse(w, r, http.StatusMisdirectedRequest, "this service does not have the host name of the request; name it with --host")
		return
	}
	if err := g.crossing.Check(r); err != nil {
		refuse(w, r, http.StatusForbidden, "a request that another site causes may not change anything")
		return
	}
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		g.next.ServeHTTP(w, r)
		return
	}
	places := g.places
	if len(g.config.Tokens) > 0 {
		t, ok := g.authenticate(w, r)
		switch {
		case !ok:
			return
		case t == nil:
			places = g.strangers
		}
		r = r.WithContext(context.WithValue(r.Context(), tokenKey{}, t))
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	default:
		h.Set("Retry-After", "1")
		refuse(w, r, http.StatusTooManyRequests, "too many requests at a time")
		return
	}
	g.next.ServeHTTP(w, r)
}

// hostAllowed checks the Host header. A page of another site that has its name resolve to
// this machine (DNS rebinding) sends its own name.
func (g *guard) hostAllowed(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if slices.Contains(g.config.Hosts, host) {
		return true
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback() || len(g.config.Tokens) > 0 && len(g.config.Hosts) == 0
}

// authenticate returns the request's token. Without one, it answers the request.
func (g *guard) authenticate(w http.ResponseWriter, r *http.Request) (*Token, bool) {
	tokens := g.config.Tokens
	var t *Token
	scheme, bearer, hasBearer := strings.Cut(r.Header.Get("Authorization"), " ")
	hasBearer = hasBearer && strings.EqualFold(scheme, "Bearer")
	switch c, err := r.Cookie(cookieName); {
	case hasBearer:
		t = findToken(tokens, bearer)
	case err == nil:
		t = findSession(tokens, c.Value, time.Now())
	}
	isAPI := isAPIPath(r.URL.Path)
	switch {
	case t == nil && hasBearer && !g.wrong.Allow():
		w.Header().Set("Retry-After", "1")
		refuse(w, r, http.StatusTooManyRequests, "too many wrong tokens")
		return nil, false
	case t == nil && !isAPI && !hasBearer && (r.URL.Path == "/login" || strings.HasPrefix(r.URL.Path, "/static/")):
		return nil, true
	case t == nil && !isAPI && !hasBearer && r.Method == http.MethodGet:
		http.Redirect(w, r, g.config.Prefix+"/login", http.StatusSeeOther)
		return nil, false
	case t == nil:
		w.Header().Set("WWW-Authenticate", `Bearer realm="tickless"`)
		refuse(w, r, http.StatusUnauthorized, "the request needs a token: Authorization: Bearer TOKEN")
		return nil, false
	case !t.CanChange && r.Method != http.MethodGet && r.Method != http.MethodHead && r.URL.Path != "/logout":
		refuse(w, r, http.StatusForbidden, "the token may only read")
		return nil, false
	}
	return t, true
}

func isAPIPath(path string) bool {
	return strings.HasPrefix(path, "/v1/") || path == "/metrics" || path == "/openapi.json"
}

// refuse answers with an error: JSON for the API, else text.
func refuse(w http.ResponseWriter, r *http.Request, status int, detail string) {
	if !isAPIPath(r.URL.Path) {
		http.Error(w, detail, status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail})
}

// setSession logs a browser in.
func setSession(w http.ResponseWriter, r *http.Request, t *Token, prefix string) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: t.session(time.Now()), Path: prefix + "/", MaxAge: int(sessionLifetime.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"})
}

func clearSession(w http.ResponseWriter, prefix string) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: prefix + "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}
