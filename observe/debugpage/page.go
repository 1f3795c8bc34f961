package debugpage

import (
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"weak"

	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"duration": formatDuration,
	"number":   formatCount,
	"figure":   formatFigure,
	"clock":    func(t time.Time) string { return t.Format("15:04:05.000") },
	"short":    shortName,
	"link":     func(name string) string { return "?" + url.Values{"scheduler": {name}}.Encode() },
}).Parse(pageHTML))

// pageData is the data of page.html, and of the page as JSON.
type pageData struct {
	Time       time.Time       `json:"time"`
	Schedulers []schedulerView `json:"schedulers"`
	// Sources is empty if the query names a Scheduler.
	Sources []sourceView `json:"sources,omitempty"`

	Program        string         `json:"-"`
	Process        string         `json:"-"`
	Shown          *schedulerView `json:"-"` // the Scheduler that the query names, or the only one
	QueryName      string         `json:"-"` // the name of a Scheduler in the query
	NotFound       bool           `json:"-"` // no Scheduler has the name in the query
	RateSeconds    float64        `json:"-"` // the longest window of the rates; 0: there are none
	RefreshSeconds int            `json:"-"` // seconds until the page is reloaded; 0: never
	// These are links to the same page: with a refresh, without one, and as JSON.
	RefreshLink, NoRefreshLink, JSONLink string `json:"-"`
}

// readPage returns the data for a query.
func (h *handler) readPage(query url.Values) *pageData {
	name, hasQueryName := query.Get("scheduler"), query.Has("scheduler")
	d := &pageData{Time: time.Now(), Schedulers: []schedulerView{}, QueryName: name}
	var schedulers, others []metric.Reading
	for _, r := range h.metricSet.Read() {
		if _, ok := r.ID.(weak.Pointer[timer.Scheduler]); ok {
			schedulers = append(schedulers, r)
		} else if !hasQueryName {
			others = append(others, r)
		}
	}
	h.rateTracker.retainOnly(schedulers)
	shownIndex := -1
	for i := range schedulers {
		d.Schedulers = append(d.Schedulers, h.newSchedulerView(&schedulers[i]))
		if schedulers[i].Name == name && hasQueryName || len(schedulers) == 1 && !hasQueryName {
			shownIndex = i
		}
		if v := d.Schedulers[i]; v.HasNumbers() && v.Rates != nil {
			d.RateSeconds = max(d.RateSeconds, v.Rates.Seconds)
		}
	}
	if shownIndex >= 0 {
		d.Shown = &d.Schedulers[shownIndex]
		d.Shown.addPending(schedulers[shownIndex].ID)
	}
	for i := range others {
		d.Sources = append(d.Sources, newSourceView(i, &others[i]))
	}
	return d
}

// addLinks adds the links and the description of the process.
func (d *pageData) addLinks(query url.Values) {
	d.Program = filepath.Base(os.Args[0])
	d.Process = fmt.Sprintf("pid %d, %s, GOMAXPROCS %d, %s goroutines", os.Getpid(), runtime.Version(),
		runtime.GOMAXPROCS(0), formatCount(runtime.NumGoroutine()))
	d.RefreshSeconds, _ = strconv.Atoi(query.Get("refresh"))
	d.RefreshSeconds = min(max(d.RefreshSeconds, 0), 3600)
	linkWith := func(key, value string) string {
		q := maps.Clone(query)
		q.Del(key)
		if value != "" {
			q.Set(key, value)
		}
		return "?" + q.Encode()
	}
	d.JSONLink = linkWith("format", "json")
	d.RefreshLink, d.NoRefreshLink = linkWith("refresh", "2"), linkWith("refresh", "")
}

// formatDuration formats seconds with three digits and a suitable unit.
func formatDuration(seconds float64) string {
	units := []struct {
		size float64
		name string
	}{{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}
	if seconds == 0 {
		return "0"
	}
	for _, u := range units {
		if seconds >= 0.9995*u.size {
			return strconv.FormatFloat(seconds/u.size, 'g', 3, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(seconds*1e9, 'g', 3, 64) + " ns"
}

// formatCount formats a count with thin spaces: 1 000 000.
func formatCount(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// formatFigure formats a number that may have a fraction: 0.25, 7.5, 1 000. A number
// below 99.5 gets two digits.
func formatFigure(f float64) string {
	if whole := math.Round(f); whole == f || math.Abs(f) >= 99.5 {
		return formatCount(int64(whole))
	}
	return strconv.FormatFloat(f, 'g', 2, 64)
}

// shortName returns a function's name without the folders of its package.
func shortName(name string) string {
	head, rest, generic := strings.Cut(name, "[") // type arguments have folders too
	if generic {
		rest = "[" + rest
	}
	return head[strings.LastIndexByte(head, '/')+1:] + rest
}
