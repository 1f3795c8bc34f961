package debugpage

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
)

// handler serves the page. See Handler.
type handler struct {
	config
	metricSet   *metric.Set // reads everything that is on the page
	rateTracker rateTracker
}

// Handler returns a handler that serves the page at any path. Any goroutine may call the
// handler.
func Handler(opts ...Option) http.Handler {
	h := new(handler)
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("debugpage: Handler: option %d is nil", i+1))
		}
		o.apply(&h.config)
	}
	if h.schedulers == nil {
		h.schedulers = []observe.Source{observe.Schedulers()}
	}
	h.metricSet = metric.NewSet(append(h.schedulers, h.sources...))
	return h
}

var (
	//go:embed style.css
	styleCSS []byte
	//go:embed script.js
	scriptJS []byte
)

// assets are the files that the page loads. A handler does not know its own path, so a
// URL names a file in the query: ?asset=style.
var assets = map[string]struct {
	contentType string
	body        []byte
}{
	"style":  {"text/css; charset=utf-8", styleCSS},
	"script": {"text/javascript; charset=utf-8", scriptJS},
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	respHeader := w.Header()
	respHeader.Set("X-Content-Type-Options", "nosniff")
	respHeader.Set("Cache-Control", "no-store")
	respHeader.Set("Referrer-Policy", "no-referrer")
	respHeader.Set("Cross-Origin-Resource-Policy", "same-origin")
	respHeader.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self';"+
		" connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		respHeader.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
		return
	}
	if !h.allowsHost(r.Host) {
		http.Error(w, "this page is only for the local machine: use the host localhost, or allow the host "+
			strconv.Quote(r.Host)+" with debugpage.WithHosts", http.StatusForbidden)
		return
	}
	query := r.URL.Query()
	if name := query.Get("asset"); name != "" {
		asset, ok := assets[name]
		if !ok {
			http.Error(w, "no asset is named "+strconv.Quote(name), http.StatusNotFound)
			return
		}
		h.writeResponse(w, http.StatusOK, asset.contentType, asset.body)
		return
	}
	d := h.readPage(query)
	schedulerNotFound := query.Has("scheduler") && d.Shown == nil
	switch format := query.Get("format"); format {
	case "json":
		if schedulerNotFound {
			http.Error(w, "no Scheduler is named "+strconv.Quote(query.Get("scheduler"))+", or it was closed", http.StatusNotFound)
			return
		}
		if query.Has("scheduler") {
			d.Schedulers = []schedulerView{*d.Shown}
		}
		body, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h.writeResponse(w, http.StatusOK, "application/json", append(body, '\n'))
	case "", "html":
		d.addLinks(query)
		d.NotFound = schedulerNotFound
		var body bytes.Buffer
		if err := pageTemplate.Execute(&body, d); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		status := http.StatusOK
		if schedulerNotFound {
			status = http.StatusNotFound
		}
		h.writeResponse(w, status, "text/html; charset=utf-8", replaceInvalidRunes(body.Bytes()))
	default:
		http.Error(w, "the format must be html or json, got "+strconv.Quote(format), http.StatusBadRequest)
	}
}

// replaceInvalidRunes replaces characters that HTML does not allow. Names, panics and
// errors may contain any bytes.
func replaceInvalidRunes(body []byte) []byte {
	isInvalid := func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError
	}
	if !bytes.ContainsFunc(body, isInvalid) {
		return body
	}
	return bytes.Map(func(r rune) rune {
		if isInvalid(r) {
			return utf8.RuneError
		}
		return r
	}, body)
}

func (h *handler) writeResponse(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // net/http does not send the body of a HEAD
}

// allowsHost reports whether a request with this Host may get the page.
func (h *handler) allowsHost(host string) bool {
	host = normalizeHost(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return true
	}
	return h.allowedHosts[host] || h.allowAnyHost
}

// normalizeHost returns the host of a Host header: without the port, in lower case.
func normalizeHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
